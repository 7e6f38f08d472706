package wire

// RequestPreparesHeader asks one member for a range of prepares (command 18, no body). On the service
// plane ToOp 2^64-1 asks for everything as it is applied.
type RequestPreparesHeader struct {
	Preamble
	Nonce  U128
	FromOp uint64
	ToOp   uint64
	Group  uint64
}

// Decode reads the header from the first 256 bytes of b: ErrShort, ErrCommand, ErrSeal or ErrField.
func (h *RequestPreparesHeader) Decode(b []byte) error {
	if err := h.openSealed(b, CommandRequestPrepares); err != nil {
		return err
	}
	h.Nonce, h.FromOp, h.ToOp, h.Group = DecodeU128(b[128:]), le.Uint64(b[144:]), le.Uint64(b[152:]), le.Uint64(b[160:])
	if h.FromOp == 0 || h.FromOp > h.ToOp {
		return ErrField
	}
	return nil
}

// Put writes the sealed frame to the first 256 bytes of b.
func (h *RequestPreparesHeader) Put(b []byte) {
	h.start(b, CommandRequestPrepares)
	h.Nonce.Put(b[128:])
	le.PutUint64(b[144:], h.FromOp)
	le.PutUint64(b[152:], h.ToOp)
	le.PutUint64(b[160:], h.Group)
	Seal(b)
}

// RepairEndHeader is RepairDone (command 20: Op is the last op served) or RangeEvicted (21: Op is the
// oldest op still held). No body.
type RepairEndHeader struct {
	Preamble
	Nonce U128
	Op    uint64
	Group uint64
}

// Decode reads the header from the first 256 bytes of b: ErrShort, ErrCommand or ErrSeal.
func (h *RepairEndHeader) Decode(b []byte) (err error) {
	if h.Preamble, err = DecodePreamble(b); err != nil {
		return err
	}
	h.Nonce, h.Op, h.Group = DecodeU128(b[128:]), le.Uint64(b[144:]), le.Uint64(b[152:])
	if h.Command != CommandRepairDone && h.Command != CommandRangeEvicted {
		return ErrCommand
	}
	return VerifySeal(b)
}

// Put writes the sealed frame to the first 256 bytes of b, with the command as it is set.
func (h *RepairEndHeader) Put(b []byte) {
	h.start(b, h.Command)
	h.Nonce.Put(b[128:])
	le.PutUint64(b[144:], h.Op)
	le.PutUint64(b[152:], h.Group)
	Seal(b)
}
