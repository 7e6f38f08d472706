package wire

// MaxLoops is the largest number of loops a process may run: peers report the loops they hear as
// one 64-bit set.
const MaxLoops = 64

// FrontDoorID is the node id of a process without a replica role. It dials the service plane only.
const FrontDoorID uint8 = 255

// NoView is what a Pong names as its metadata view while its sender takes part in none: it promises nothing.
const NoView = ^uint32(0)

// PingHeader opens a Ping (1) or a Pong (2), the frames by which native nodes introduce themselves and
// hear of each other. The documented plane has both numbers and no use for them; a mixed cluster never
// sends them. Both are sealed, the body by checksum_body. All ids are 0 while unknown.
//
//	128 cluster uuid 16 · 144 node uuid 16 · 160 epoch u64 · 168 sent u64 · 176 echo u64 · 184 wall u64 ·
//	192 features u64 · 200 metadata view u32 · 204 build u32 · 208 node u8 · 209 loops u8 · 210 lane u8 ·
//	211 mixed u8 · 212 address length u16 · 214 heard count u16 ·
//	216 mismatch u64 · 224 digest count u8 · 225 reserved 31
type PingHeader struct {
	Preamble
	ClusterUUID  U128
	NodeUUID     U128
	Epoch        uint64 // of the sender's process: grows with each start
	Sent         uint64 // sender's monotonic clock, µs
	Echo         uint64 // Pong: Sent of the Ping it answers
	Wall         uint64 // sender's wall clock, µs since 1970
	Features     uint64 // one bit each; unknown bits are no error
	MetadataView uint32 // view of the metadata group at the sender, 0 without a replica of it; in a Pong NoView unless it takes part
	Build        uint32 // version word of the sender's build
	Node         uint8  // FrontDoorID without a replica role
	Loops        uint8  // 0..MaxLoops
	Lane         uint8  // of the connection, in the Ping that opens it
	Mixed        bool   // the sender's setting
	AddressLen   uint16 // bytes of PingBody.Address, set by AppendPing
	HeardCount   uint16 // entries of PingBody.Heard, set by AppendPing
	Mismatch     uint64 // Pong: bit l: the sender's digest for loop l of the receiver is another one than the Ping's
	DigestCount  uint8  // entries of PingBody.Digests, set by AppendPing
}

// PingBody is what stands behind the header, in this order:
// progress u64 × loops · heard {node u8, epoch u64, loops u64} × count · digests u64 × count · address.
type PingBody struct {
	Progress []uint64 // per loop of the sender: rounds that went through its journal and back
	Heard    []Heard
	Digests  []uint64 // per loop of the sender, or none: what it leads that the receiver holds; see vsr/pulse
	Address  []byte   // host:port where other processes reach the sender's service plane, may be empty
}

// Heard is what the sender hears of one other node: the input of pre-votes.
type Heard struct {
	Node  uint8
	Epoch uint64 // process epoch that is heard
	Loops uint64 // bit l: loop l makes progress
}

const heardSize = 17

// Decode reads the header from the first 256 bytes of b: ErrShort, ErrCommand, ErrSeal, ErrField or
// ErrSize. The size is then that of header and body, exactly.
func (h *PingHeader) Decode(b []byte) (err error) {
	if h.Preamble, err = DecodePreamble(b); err != nil {
		return err
	}
	if h.Command != CommandPing && h.Command != CommandPong {
		return ErrCommand
	}
	if err := VerifySeal(b); err != nil {
		return err
	}
	h.ClusterUUID, h.NodeUUID = DecodeU128(b[128:]), DecodeU128(b[144:])
	h.Epoch, h.Sent, h.Echo, h.Wall = le.Uint64(b[160:]), le.Uint64(b[168:]), le.Uint64(b[176:]), le.Uint64(b[184:])
	h.Features, h.MetadataView, h.Build = le.Uint64(b[192:]), le.Uint32(b[200:]), le.Uint32(b[204:])
	h.Node, h.Loops, h.Lane, h.Mixed = b[208], b[209], b[210], b[211] == 1
	h.AddressLen, h.HeardCount = le.Uint16(b[212:]), le.Uint16(b[214:])
	h.Mismatch, h.DigestCount = le.Uint64(b[216:]), b[224]
	switch {
	case h.Loops > MaxLoops || h.DigestCount > MaxLoops || b[211] > 1:
		return ErrField
	case int(h.Size) != h.size():
		return ErrSize
	}
	return nil
}

func (h *PingHeader) size() int {
	return HeaderSize + 8*int(h.Loops) + heardSize*int(h.HeardCount) + 8*int(h.DigestCount) + int(h.AddressLen)
}

// Put writes the sealed header to the first 256 bytes of b, with command, size, counts and
// checksum_body as they are set.
func (h *PingHeader) Put(b []byte) {
	h.start(b, h.Command)
	h.ClusterUUID.Put(b[128:])
	h.NodeUUID.Put(b[144:])
	le.PutUint64(b[160:], h.Epoch)
	le.PutUint64(b[168:], h.Sent)
	le.PutUint64(b[176:], h.Echo)
	le.PutUint64(b[184:], h.Wall)
	le.PutUint64(b[192:], h.Features)
	le.PutUint32(b[200:], h.MetadataView)
	le.PutUint32(b[204:], h.Build)
	b[208], b[209], b[210], b[211] = h.Node, h.Loops, h.Lane, bit(h.Mixed)
	le.PutUint16(b[212:], h.AddressLen)
	le.PutUint16(b[214:], h.HeardCount)
	le.PutUint64(b[216:], h.Mismatch)
	b[224] = h.DigestCount
	Seal(b)
}

// AppendPing writes a whole frame behind dst: the header with command, size, counts and checksums
// filled in (in h too), and the body. len(body.Progress) becomes h.Loops. The caller bounds what it
// gives: MaxLoops loops and digests, 65 535 entries, 65 535 bytes of address.
func AppendPing(dst []byte, h *PingHeader, body *PingBody) []byte {
	if h.Command != CommandPong {
		h.Command = CommandPing
	}
	h.Loops, h.HeardCount, h.AddressLen = uint8(len(body.Progress)), uint16(len(body.Heard)), uint16(len(body.Address))
	h.DigestCount = uint8(len(body.Digests))
	h.Size = uint32(h.size())
	at := len(dst)
	var head [HeaderSize]byte
	dst = append(dst, head[:]...)
	for _, n := range body.Progress {
		dst = appendU64(dst, n)
	}
	for _, x := range body.Heard {
		dst = append(dst, x.Node)
		dst = appendU64(dst, x.Epoch)
		dst = appendU64(dst, x.Loops)
	}
	for _, n := range body.Digests {
		dst = appendU64(dst, n)
	}
	dst = append(dst, body.Address...)
	h.ChecksumBody = Widened(dst[at+HeaderSize:])
	h.Put(dst[at:])
	h.Checksum = DecodeU128(dst[at:])
	return dst
}

// Decode reads the body that stands behind the decoded header h: ErrShort, ErrSize or ErrSeal. It
// reuses the slices of p; Address aliases b.
func (p *PingBody) Decode(h *PingHeader, b []byte) error {
	switch {
	case len(b) < h.size()-HeaderSize:
		return ErrShort
	case len(b) > h.size()-HeaderSize:
		return ErrSize
	case h.ChecksumBody != Widened(b):
		return ErrSeal
	}
	p.Progress, p.Heard, p.Digests = p.Progress[:0], p.Heard[:0], p.Digests[:0]
	for range h.Loops {
		p.Progress = append(p.Progress, le.Uint64(b))
		b = b[8:]
	}
	for range h.HeardCount {
		p.Heard = append(p.Heard, Heard{Node: b[0], Epoch: le.Uint64(b[1:]), Loops: le.Uint64(b[9:])})
		b = b[heardSize:]
	}
	for range h.DigestCount {
		p.Digests = append(p.Digests, le.Uint64(b))
		b = b[8:]
	}
	p.Address = b
	return nil
}
