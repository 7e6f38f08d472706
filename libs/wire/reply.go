package wire

// ReplyHeader opens a frame to a client (command 8); client-wire.md §3.2.
type ReplyHeader struct {
	Cluster         U128
	Size            uint32 // bytes, header and body
	View            uint32
	Release         uint32
	Replica         uint8
	RequestChecksum U128
	Context         U128 // 0 on committed replies
	Client          U128
	Op              uint64
	Commit          uint64
	Timestamp       uint64 // µs since epoch
	Request         uint64 // echo of the request number
	Operation       Operation
	Status          Code // 0, or an error with an empty body
}

// Decode reads a reply header from the first 256 bytes of b: ErrShort, ErrCommand, or
// ErrOperation for an operation byte that clients reject. All fields but those of ErrShort are filled.
func (h *ReplyHeader) Decode(b []byte) error {
	if len(b) < HeaderSize {
		return ErrShort
	}
	*h = ReplyHeader{
		Cluster: DecodeU128(b[offCluster:]), Size: le.Uint32(b[offSize:]), View: le.Uint32(b[offView:]),
		Release: le.Uint32(b[offRelease:]), Replica: b[offReplica],
		RequestChecksum: DecodeU128(b[128:]), Context: DecodeU128(b[144:]), Client: DecodeU128(b[160:]),
		Op: le.Uint64(b[176:]), Commit: le.Uint64(b[184:]), Timestamp: le.Uint64(b[192:]), Request: le.Uint64(b[200:]),
		Operation: Operation(b[208]), Status: Code(le.Uint32(b[216:])),
	}
	if Command(b[offCommand]) != CommandReply {
		return ErrCommand
	}
	if !h.Operation.Known() {
		return ErrOperation
	}
	return nil
}

// Put writes the header to the first 256 bytes of b, reserved bytes and checksums zero.
func (h *ReplyHeader) Put(b []byte) {
	p := Preamble{Cluster: h.Cluster, Size: h.Size, View: h.View, Release: h.Release, Command: CommandReply, Replica: h.Replica}
	p.put(b)
	h.RequestChecksum.Put(b[128:])
	h.Context.Put(b[144:])
	h.Client.Put(b[160:])
	le.PutUint64(b[176:], h.Op)
	le.PutUint64(b[184:], h.Commit)
	le.PutUint64(b[192:], h.Timestamp)
	le.PutUint64(b[200:], h.Request)
	b[208] = byte(h.Operation)
	le.PutUint32(b[216:], uint32(h.Status))
}

// CommittedReply is the header of the reply to a committed prepare with bodySize bytes of body: a
// pure function of the prepare, equal on every replica that holds the same copy of it.
func CommittedReply(p *PrepareHeader, bodySize int) ReplyHeader {
	return ReplyHeader{
		Cluster: p.Cluster, Size: uint32(HeaderSize + bodySize), View: p.View, Release: p.Release, Replica: p.Replica,
		RequestChecksum: p.RequestChecksum, Client: p.Client, Op: p.Op, Commit: p.Op, Timestamp: p.Timestamp,
		Request: p.Request, Operation: p.Operation,
	}
}
