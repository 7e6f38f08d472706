package wire

// PrepareOkHeader acknowledges one prepare to the primary (command 7, no body). It says "I hold this
// op", with the identity to tell which. Prepare fields are echoed.
type PrepareOkHeader struct {
	Preamble
	Parent          U128
	PrepareChecksum U128 // identity of the prepare
	Op              uint64
	Commit          uint64 // acker's commit point
	Timestamp       uint64
	Request         uint64
	Operation       Operation
	Group           uint64
}

// Decode reads the header from the first 256 bytes of b: ErrShort, ErrCommand, ErrOperation, ErrSeal
// or ErrSize.
func (h *PrepareOkHeader) Decode(b []byte) error {
	if err := h.open(b, CommandPrepareOk); err != nil {
		return err
	}
	h.Parent, h.PrepareChecksum = DecodeU128(b[128:]), DecodeU128(b[144:])
	h.Op, h.Commit, h.Timestamp, h.Request = le.Uint64(b[160:]), le.Uint64(b[168:]), le.Uint64(b[176:]), le.Uint64(b[184:])
	h.Operation, h.Group = Operation(b[192]), le.Uint64(b[200:])
	if !h.Operation.Known() && !h.Operation.Native() {
		return ErrOperation
	}
	return sealedSize(b, h.Size)
}

// Put writes the sealed frame to the first 256 bytes of b.
func (h *PrepareOkHeader) Put(b []byte) {
	h.start(b, CommandPrepareOk)
	h.Parent.Put(b[128:])
	h.PrepareChecksum.Put(b[144:])
	le.PutUint64(b[160:], h.Op)
	le.PutUint64(b[168:], h.Commit)
	le.PutUint64(b[176:], h.Timestamp)
	le.PutUint64(b[184:], h.Request)
	b[192] = byte(h.Operation)
	le.PutUint64(b[200:], h.Group)
	Seal(b)
}

// sealedSize checks the seal, then that the frame is a header alone.
func sealedSize(b []byte, size uint32) error {
	if err := VerifySeal(b); err != nil {
		return err
	}
	if size != HeaderSize {
		return ErrSize
	}
	return nil
}

// CommitHeader is the primary's sign of life (command 9, no body).
type CommitHeader struct {
	Preamble
	CommitChecksum     U128   // 0
	TimestampMonotonic uint64 // a counter, not a clock: one more than the highest seen or sent for the group
	Commit             uint64 // highest op the sender has applied
	CheckpointOp       uint64 // 0
	Group              uint64
}

// Decode reads the header from the first 256 bytes of b: ErrShort, ErrCommand, ErrSeal or ErrSize.
func (h *CommitHeader) Decode(b []byte) error {
	if err := h.open(b, CommandCommit); err != nil {
		return err
	}
	h.CommitChecksum, h.TimestampMonotonic = DecodeU128(b[128:]), le.Uint64(b[144:])
	h.Commit, h.CheckpointOp, h.Group = le.Uint64(b[152:]), le.Uint64(b[160:]), le.Uint64(b[168:])
	return sealedSize(b, h.Size)
}

// Put writes the sealed frame to the first 256 bytes of b.
func (h *CommitHeader) Put(b []byte) {
	h.start(b, CommandCommit)
	h.CommitChecksum.Put(b[128:])
	le.PutUint64(b[144:], h.TimestampMonotonic)
	le.PutUint64(b[152:], h.Commit)
	le.PutUint64(b[160:], h.CheckpointOp)
	le.PutUint64(b[168:], h.Group)
	Seal(b)
}
