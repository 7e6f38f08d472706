package wire

// Routed is what the service plane adds to a Request (5): where and when it was resolved, and what the
// answering role needs beyond the client's own fields. It stands in bytes that the documented header
// leaves reserved; such a frame never reaches a reference node. A client's command code has its place at
// 228 here, since 196 is taken.
//
//	64 connection 16 · 80 sequence u64 · 88 max reply u32 · 92 in-flight count u32 ·
//	196 metadata op u64 · 204 floor view u32 · 208 floor next offset u64 · 216 generation u64 · 224 deadline u32 ·
//	228 code u32 · 232 flags u8 · 233 consumer kind u8 · 234 reserved 2 · 236 consumer id u32 · 240 correlation u64
//
// In-flight partitions are u32 each and stand behind the body.
type Routed struct {
	Connection   U128   // front-door's id of the client's connection
	Sequence     uint64 // front-door's number of a partition write
	MetadataOp   uint64 // metadata op the request was resolved at
	Floor        Floor  // what the sender has shown of the group: a replica below it refuses
	Generation   uint64 // of the consumer group
	Deadline     uint32 // ms the sender waits for the answer, 0: as long as the connection lives
	Code         uint32 // Cmd, or with Internal the number of a request between roles
	Internal     bool
	ConsumerKind ConsumerKind
	ConsumerID   uint32
	MaxReply     uint32 // bytes, 0: the answering role's own bound
	InFlight     uint32 // partitions listed behind the body
	Correlation  uint64 // the answer carries the same number
}

const routedInternal = 1 << 0

// Put writes r into a header of at least 256 bytes that RequestHeader.Put has written.
func (r *Routed) Put(b []byte) {
	b = b[:HeaderSize:HeaderSize]
	r.Connection.Put(b[64:])
	le.PutUint64(b[80:], r.Sequence)
	le.PutUint32(b[88:], r.MaxReply)
	le.PutUint32(b[92:], r.InFlight)
	le.PutUint64(b[196:], r.MetadataOp)
	le.PutUint32(b[204:], r.Floor.View)
	le.PutUint64(b[208:], r.Floor.Next)
	le.PutUint64(b[216:], r.Generation)
	le.PutUint32(b[224:], r.Deadline)
	le.PutUint32(b[228:], r.Code)
	b[232], b[233] = bit(r.Internal)*routedInternal, byte(r.ConsumerKind)
	le.PutUint32(b[236:], r.ConsumerID)
	le.PutUint64(b[240:], r.Correlation)
}

// Decode reads r from a Request header of at least 256 bytes: ErrShort; ErrReserved for flags that are
// not known; ErrSize when the in-flight list does not fit into the frame.
func (r *Routed) Decode(b []byte) error {
	if len(b) < HeaderSize {
		return ErrShort
	}
	*r = Routed{
		Connection: DecodeU128(b[64:]), Sequence: le.Uint64(b[80:]), MaxReply: le.Uint32(b[88:]), InFlight: le.Uint32(b[92:]),
		MetadataOp: le.Uint64(b[196:]), Floor: Floor{View: le.Uint32(b[204:]), Next: le.Uint64(b[208:])}, Generation: le.Uint64(b[216:]),
		Deadline: le.Uint32(b[224:]), Code: le.Uint32(b[228:]), Internal: b[232]&routedInternal != 0, ConsumerKind: ConsumerKind(b[233]),
		ConsumerID: le.Uint32(b[236:]), Correlation: le.Uint64(b[240:]),
	}
	size := le.Uint32(b[offSize:])
	switch {
	case b[232]&^routedInternal != 0:
		return ErrReserved
	case size < HeaderSize || uint64(r.InFlight)*4 > uint64(size-HeaderSize):
		return ErrSize
	}
	return nil
}

// NoPrimary is the primary hint of a reply whose sender does not know.
const NoPrimary uint8 = 0xff

// ReplyContext is what the service plane puts into a Reply (8): the context field, zero for clients,
// and reserved bytes behind the documented ones.
//
//	144 view u32 · 148 primary u8 · 149 reason u8 · 150 flags u8 · 151 reserved 1 · 152 metadata op u64 · 240 correlation u64
type ReplyContext struct {
	View        uint32 // of the group at the answering replica
	Primary     uint8  // member index of the primary as far as known, or NoPrimary
	Reason      uint8  // why a status is retryable (link.Reason)
	Framed      bool   // the answer was a frame of its own at the answering role, and is to be one again
	MetadataOp  uint64 // op the answering role has followed the metadata to
	Correlation uint64
}

const contextFramed = 1 << 0

// Put writes c into a header of at least 256 bytes that ReplyHeader.Put has written.
func (c *ReplyContext) Put(b []byte) {
	b = b[:HeaderSize:HeaderSize]
	le.PutUint32(b[144:], c.View)
	b[148], b[149], b[150], b[151] = c.Primary, c.Reason, bit(c.Framed)*contextFramed, 0
	le.PutUint64(b[152:], c.MetadataOp)
	le.PutUint64(b[240:], c.Correlation)
}

// Decode reads c from a Reply header of at least 256 bytes: ErrShort, or ErrReserved for flags that
// are not known.
func (c *ReplyContext) Decode(b []byte) error {
	if len(b) < HeaderSize {
		return ErrShort
	}
	*c = ReplyContext{
		View: le.Uint32(b[144:]), Primary: b[148], Reason: b[149], Framed: b[150]&contextFramed != 0,
		MetadataOp: le.Uint64(b[152:]), Correlation: le.Uint64(b[240:]),
	}
	if b[150]&^contextFramed != 0 {
		return ErrReserved
	}
	return nil
}

// Clear takes the service plane's fields out of a Reply header, so that it is a client's again.
func (*ReplyContext) Clear(b []byte) {
	clear(b[144:160])
	clear(b[240:248])
}

// PutCorrelation marks an Eviction (13) with the number of the request it answers.
func PutCorrelation(b []byte, correlation uint64) { le.PutUint64(b[240:], correlation) }

// TakeCorrelation reads the number and clears it: the bytes are reserved in the documented header.
func TakeCorrelation(b []byte) uint64 {
	n := le.Uint64(b[240:])
	clear(b[240:248])
	return n
}
