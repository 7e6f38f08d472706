package wire

// RequestStateTransferHeader asks the primary for an offer of its state (command 22, no body).
type RequestStateTransferHeader struct {
	Preamble
	Nonce U128
	Group uint64
}

// Decode reads the header from the first 256 bytes of b: ErrShort, ErrCommand, ErrSeal or ErrSize.
func (h *RequestStateTransferHeader) Decode(b []byte) error {
	if err := h.open(b, CommandRequestStateTransfer); err != nil {
		return err
	}
	h.Nonce, h.Group = DecodeU128(b[128:]), le.Uint64(b[144:])
	return sealedSize(b, h.Size)
}

// Put writes the sealed frame to the first 256 bytes of b.
func (h *RequestStateTransferHeader) Put(b []byte) {
	h.start(b, CommandRequestStateTransfer)
	h.Nonce.Put(b[128:])
	le.PutUint64(b[144:], h.Group)
	Seal(b)
}

// StateTransferTargetHeader offers a state (command 23). With Available its body is a manifest,
// otherwise there is none and Transient says whether asking again can help.
type StateTransferTargetHeader struct {
	Preamble
	Nonce     U128
	CommitOp  uint64 // op the offered state includes
	Group     uint64
	Available bool
	Transient bool
	CommitMax uint64
}

// Decode reads the header from the first 256 bytes of b: ErrShort, ErrCommand, ErrSeal, ErrField or
// ErrSize.
func (h *StateTransferTargetHeader) Decode(b []byte) error {
	if err := h.openSealed(b, CommandStateTransferTarget); err != nil {
		return err
	}
	h.Nonce, h.CommitOp, h.Group = DecodeU128(b[128:]), le.Uint64(b[144:]), le.Uint64(b[152:])
	h.Available, h.Transient, h.CommitMax = b[160] == 1, b[161] == 1, le.Uint64(b[168:])
	switch {
	case b[160] > 1 || b[161] > 1 || h.Available && h.Transient:
		return ErrField
	case h.Size < HeaderSize || !h.Available && h.Size != HeaderSize:
		return ErrSize
	}
	return nil
}

// Put writes the sealed frame header to the first 256 bytes of b.
func (h *StateTransferTargetHeader) Put(b []byte) {
	h.start(b, CommandStateTransferTarget)
	h.Nonce.Put(b[128:])
	le.PutUint64(b[144:], h.CommitOp)
	le.PutUint64(b[152:], h.Group)
	b[160], b[161] = bit(h.Available), bit(h.Transient)
	le.PutUint64(b[168:], h.CommitMax)
	Seal(b)
}

func bit(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// RequestStateChunkHeader asks for a piece of an offered artifact (command 24, no body).
type RequestStateChunkHeader struct {
	Preamble
	Nonce    U128
	Offset   uint64 // bytes
	Group    uint64
	Len      uint32 // bytes, at least 1
	Artifact uint32 // index into the manifest
}

// Decode reads the header from the first 256 bytes of b: ErrShort, ErrCommand, ErrSeal, ErrField or
// ErrSize.
func (h *RequestStateChunkHeader) Decode(b []byte) error {
	if err := h.open(b, CommandRequestStateChunk); err != nil {
		return err
	}
	h.Nonce, h.Offset, h.Group = DecodeU128(b[128:]), le.Uint64(b[144:]), le.Uint64(b[152:])
	h.Len, h.Artifact = le.Uint32(b[160:]), le.Uint32(b[164:])
	if err := sealedSize(b, h.Size); err != nil {
		return err
	}
	if h.Len == 0 {
		return ErrField
	}
	return nil
}

// Put writes the sealed frame to the first 256 bytes of b.
func (h *RequestStateChunkHeader) Put(b []byte) {
	h.start(b, CommandRequestStateChunk)
	h.Nonce.Put(b[128:])
	le.PutUint64(b[144:], h.Offset)
	le.PutUint64(b[152:], h.Group)
	le.PutUint32(b[160:], h.Len)
	le.PutUint32(b[164:], h.Artifact)
	Seal(b)
}

// StateChunkHeader carries a piece of an artifact as its body (command 25). Chunks have no checksum of
// their own: the manifest's covers the artifact.
type StateChunkHeader struct {
	Preamble
	Nonce    U128
	Offset   uint64
	Group    uint64
	Artifact uint32
}

// Decode reads the header from the first 256 bytes of b: ErrShort, ErrCommand, ErrSeal or ErrSize.
func (h *StateChunkHeader) Decode(b []byte) error {
	if err := h.openSealed(b, CommandStateChunk); err != nil {
		return err
	}
	h.Nonce, h.Offset, h.Group, h.Artifact = DecodeU128(b[128:]), le.Uint64(b[144:]), le.Uint64(b[152:]), le.Uint32(b[160:])
	if h.Size < HeaderSize {
		return ErrSize
	}
	return nil
}

// Put writes the sealed frame header to the first 256 bytes of b.
func (h *StateChunkHeader) Put(b []byte) {
	h.start(b, CommandStateChunk)
	h.Nonce.Put(b[128:])
	le.PutUint64(b[144:], h.Offset)
	le.PutUint64(b[152:], h.Group)
	le.PutUint32(b[160:], h.Artifact)
	Seal(b)
}
