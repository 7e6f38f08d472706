package wire

// EvictionReason says why a client's session or login ended (client-wire.md §3.3).
type EvictionReason uint8

// Reasons 1 to 15; 0 is not a reason and never sent.
const (
	EvictNone                    EvictionReason = 0
	EvictNoSession               EvictionReason = 1
	EvictClientReleaseTooLow     EvictionReason = 2
	EvictClientReleaseTooHigh    EvictionReason = 3
	EvictInvalidRequestOperation EvictionReason = 4
	EvictInvalidRequestBody      EvictionReason = 5
	EvictInvalidRequestBodySize  EvictionReason = 6
	EvictSessionTooLow           EvictionReason = 7
	EvictSessionReleaseMismatch  EvictionReason = 8
	EvictInvalidCredentials      EvictionReason = 9
	EvictInvalidToken            EvictionReason = 10
	EvictUserInactive            EvictionReason = 11
	EvictSessionError            EvictionReason = 12
	EvictStaleClient             EvictionReason = 13
	EvictIncompatibleProtocol    EvictionReason = 14
	EvictMalformedLogin          EvictionReason = 15
)

var evictionNames = [...]string{
	"None", "NoSession", "ClientReleaseTooLow", "ClientReleaseTooHigh", "InvalidRequestOperation", "InvalidRequestBody",
	"InvalidRequestBodySize", "SessionTooLow", "SessionReleaseMismatch", "InvalidCredentials", "InvalidToken",
	"UserInactive", "SessionError", "StaleClient", "IncompatibleProtocol", "MalformedLogin",
}

// String returns the reason's name.
func (r EvictionReason) String() string {
	if int(r) < len(evictionNames) {
		return evictionNames[r]
	}
	return "Unknown"
}

// EvictionHeader is a whole frame of 256 bytes to a client (command 13); client-wire.md §3.3. View,
// release and replica are 0.
type EvictionHeader struct {
	Cluster    U128
	Client     U128   // not 0
	VersionMax uint32 // server protocol window, EvictIncompatibleProtocol only
	VersionMin uint32
	Reason     EvictionReason
}

// Decode reads an eviction from the first 256 bytes of b: ErrShort, ErrCommand, ErrReserved,
// ErrSize, ErrField (client 0) or ErrReason. All fields but those of ErrShort are filled.
func (h *EvictionHeader) Decode(b []byte) error {
	if len(b) < HeaderSize {
		return ErrShort
	}
	*h = EvictionHeader{
		Cluster: DecodeU128(b[offCluster:]), Client: DecodeU128(b[128:]),
		VersionMax: le.Uint32(b[144:]), VersionMin: le.Uint32(b[148:]), Reason: EvictionReason(b[255]),
	}
	switch {
	case Command(b[offCommand]) != CommandEviction:
		return ErrCommand
	case !zero(b[offReserved:offCommandArea]) || !zero(b[152:255]):
		return ErrReserved
	case le.Uint32(b[offSize:]) != HeaderSize:
		return ErrSize
	case h.Client.IsZero():
		return ErrField
	case h.Reason == EvictNone || int(h.Reason) >= len(evictionNames):
		return ErrReason
	}
	return nil
}

// Put writes the frame to the first 256 bytes of b.
func (h *EvictionHeader) Put(b []byte) {
	p := Preamble{Cluster: h.Cluster, Size: HeaderSize, Command: CommandEviction}
	p.put(b)
	h.Client.Put(b[128:])
	le.PutUint32(b[144:], h.VersionMax)
	le.PutUint32(b[148:], h.VersionMin)
	b[255] = byte(h.Reason)
}
