package wire

// RequestHeader opens a frame from a client (command 5) and, with Group set, a request routed
// inside the cluster (client-wire.md §3.1, replica-wire.md §2.1).
type RequestHeader struct {
	Cluster         U128
	Size            uint32 // bytes, header and body
	View            uint32
	Release         uint32
	Replica         uint8
	Client          U128
	RequestChecksum U128 // 0, or Widened(body)
	Timestamp       uint64
	Request         uint64 // 0 on Register
	Operation       Operation
	Session         uint64 // 0 on Register
	UserID          uint32
	Code            Cmd    // command, meaningful when Operation is OpNonReplicated
	Group           uint64 // routed form only; clients send 0
}

// Decode reads a request header from the first 256 bytes of b. Every field is filled unless the
// error is ErrShort, so a request that breaks the rules can still be answered. Validate judges the
// fields.
func (h *RequestHeader) Decode(b []byte) error {
	if len(b) < HeaderSize {
		return ErrShort
	}
	*h = RequestHeader{
		Cluster: DecodeU128(b[offCluster:]), Size: le.Uint32(b[offSize:]), View: le.Uint32(b[offView:]),
		Release: le.Uint32(b[offRelease:]), Replica: b[offReplica],
		Client: DecodeU128(b[128:]), RequestChecksum: DecodeU128(b[144:]),
		Timestamp: le.Uint64(b[160:]), Request: le.Uint64(b[168:]), Operation: Operation(b[176]),
		Session: le.Uint64(b[184:]), UserID: le.Uint32(b[192:]), Code: Cmd(le.Uint32(b[196:])), Group: le.Uint64(b[248:]),
	}
	if Command(b[offCommand]) != CommandRequest {
		return ErrCommand
	}
	return nil
}

// Validate applies the field rules of client-wire.md §3.1: a client id, a known operation, no
// session or request number on Register, both of them on every other replicated operation.
// ErrOperation or ErrField.
func (h *RequestHeader) Validate() error {
	switch {
	case h.Operation == OpReserved || !h.Operation.Known():
		return ErrOperation
	case h.Client.IsZero():
		return ErrField
	case h.Operation == OpRegister:
		if h.Session != 0 || h.Request != 0 {
			return ErrField
		}
	case h.Operation != OpNonReplicated:
		if h.Session == 0 || h.Request == 0 {
			return ErrField
		}
	}
	return nil
}

// Put writes the header to the first 256 bytes of b, reserved bytes zero.
func (h *RequestHeader) Put(b []byte) {
	p := Preamble{Cluster: h.Cluster, Size: h.Size, View: h.View, Release: h.Release, Command: CommandRequest, Replica: h.Replica}
	p.put(b)
	h.Client.Put(b[128:])
	h.RequestChecksum.Put(b[144:])
	le.PutUint64(b[160:], h.Timestamp)
	le.PutUint64(b[168:], h.Request)
	b[176] = byte(h.Operation)
	le.PutUint64(b[184:], h.Session)
	le.PutUint32(b[192:], h.UserID)
	le.PutUint32(b[196:], uint32(h.Code))
	le.PutUint64(b[248:], h.Group)
}
