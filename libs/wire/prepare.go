package wire

// PrepareHeader opens a Prepare (6) or, when served for repair, a RepairPrepare (19);
// replica-wire.md §2.1. It is also the form in which an entry stands in the journal and in a
// view-change suffix.
type PrepareHeader struct {
	Checksum        U128 // Identity(); 0 on blank suffix entries
	ChecksumBody    U128 // metadata: Widened(body); partitions: 0
	Cluster         U128
	Size            uint32 // bytes, header and body
	View            uint32
	Release         uint32
	Command         Command
	Replica         uint8 // primary that first built the prepare
	Client          U128
	Parent          U128 // identity of the entry before
	RequestChecksum U128
	Op              uint64
	Commit          uint64 // primary's commit point when built
	Timestamp       uint64 // µs since epoch
	Request         uint64
	Operation       Operation
	Padding         [7]byte // zero; part of the identity, so a foreign value is carried on
	Group           uint64
	UserID          uint32
}

// Decode reads a prepare header from the first 256 bytes of b: ErrShort, ErrCommand, ErrOperation
// or ErrReserved. It does not compare the identity; Verify does. All fields but those of ErrShort are filled.
func (h *PrepareHeader) Decode(b []byte) error {
	if len(b) < HeaderSize {
		return ErrShort
	}
	b = b[:HeaderSize:HeaderSize]
	h.Checksum, h.ChecksumBody, h.Cluster = DecodeU128(b), DecodeU128(b[offChecksumBody:]), DecodeU128(b[offCluster:])
	h.Size, h.View, h.Release = le.Uint32(b[offSize:]), le.Uint32(b[offView:]), le.Uint32(b[offRelease:])
	h.Command, h.Replica = Command(b[offCommand]), b[offReplica]
	h.Client, h.Parent, h.RequestChecksum = DecodeU128(b[128:]), DecodeU128(b[144:]), DecodeU128(b[160:])
	h.Op, h.Commit, h.Timestamp, h.Request = le.Uint64(b[176:]), le.Uint64(b[184:]), le.Uint64(b[192:]), le.Uint64(b[200:])
	h.Operation = Operation(b[208])
	copy(h.Padding[:], b[209:216])
	h.Group, h.UserID = le.Uint64(b[216:]), le.Uint32(b[224:])
	switch {
	case h.Command != CommandPrepare && h.Command != CommandRepairPrepare:
		return ErrCommand
	case !h.Operation.Known() && !h.Operation.Native():
		return ErrOperation
	case !zero(b[offReserved:offCommandArea]) || !zero(b[228:HeaderSize]):
		return ErrReserved
	}
	return nil
}

// Put writes the header to the first 256 bytes of b, reserved bytes zero, with h.Checksum as it is.
func (h *PrepareHeader) Put(b []byte) {
	b = b[:HeaderSize:HeaderSize]
	clear(b[offReserved:offCommandArea])
	clear(b[228:])
	h.Checksum.Put(b)
	h.ChecksumBody.Put(b[offChecksumBody:])
	h.Cluster.Put(b[offCluster:])
	le.PutUint32(b[offSize:], h.Size)
	le.PutUint32(b[offView:], h.View)
	le.PutUint32(b[offRelease:], h.Release)
	b[offCommand], b[offReplica] = byte(h.Command), h.Replica
	h.Client.Put(b[128:])
	h.Parent.Put(b[144:])
	h.RequestChecksum.Put(b[160:])
	le.PutUint64(b[176:], h.Op)
	le.PutUint64(b[184:], h.Commit)
	le.PutUint64(b[192:], h.Timestamp)
	le.PutUint64(b[200:], h.Request)
	b[208] = byte(h.Operation)
	copy(b[209:216], h.Padding[:])
	le.PutUint64(b[216:], h.Group)
	le.PutUint32(b[224:], h.UserID)
}

// Identity is the checksum a sealed prepare carries: it covers the header without checksum and
// view, with the command taken as Prepare (replica-wire.md §1.4). The identity of an entry does not
// change when it is re-stamped for a new view or served for repair.
func (h *PrepareHeader) Identity() U128 {
	var b [HeaderSize]byte
	h.Put(b[:])
	clear(b[:offChecksumBody])
	clear(b[offView:offRelease])
	b[offCommand] = byte(CommandPrepare)
	return Widened(b[:])
}

// Verify compares the carried checksum with the identity: ErrIdentity. A zero checksum means
// unsealed and fails too.
func (h *PrepareHeader) Verify() error {
	if h.Checksum.IsZero() || h.Checksum != h.Identity() {
		return ErrIdentity
	}
	return nil
}

// BodySize is the number of body bytes the size field announces, 0 when it is below a header.
func (h *PrepareHeader) BodySize() int {
	if h.Size < HeaderSize {
		return 0
	}
	return int(h.Size - HeaderSize)
}
