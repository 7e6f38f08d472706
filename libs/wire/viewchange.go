package wire

// StartViewChangeHeader proposes the view in its preamble (command 10, no body).
type StartViewChangeHeader struct {
	Preamble
	Group uint64
}

// Decode reads the header from the first 256 bytes of b: ErrShort, ErrCommand, ErrSeal or ErrField.
func (h *StartViewChangeHeader) Decode(b []byte) error {
	if err := h.openSealed(b, CommandStartViewChange); err != nil {
		return err
	}
	h.Group = le.Uint64(b[128:])
	return h.noRelease()
}

// Put writes the sealed frame to the first 256 bytes of b.
func (h *StartViewChangeHeader) Put(b []byte) {
	h.start(b, CommandStartViewChange)
	le.PutUint64(b[128:], h.Group)
	Seal(b)
}

func (p *Preamble) noRelease() error {
	if p.Release != 0 {
		return ErrField
	}
	return nil
}

// DoViewChangeHeader is a vote for the view in its preamble with what the sender knows of the log
// (command 11); its body is a Suffix.
type DoViewChangeHeader struct {
	Preamble
	Op      uint64 // head
	Commit  uint64
	Group   uint64
	LogView uint32
	Flags   uint8 // byte 156, DVCSuspect; 0 towards reference nodes
	Nack    U128  // bit i: the op of suffix entry i was never here
	Present U128  // bit i: it is here
}

// DVCSuspect marks a vote of a replica that cannot vouch for its log.
const DVCSuspect uint8 = 1

// Decode reads the header from the first 256 bytes of b: ErrShort, ErrCommand, ErrSeal, ErrField, or
// ErrSize when the size is not that of a suffix. DecodeSuffix takes the body.
func (h *DoViewChangeHeader) Decode(b []byte) error {
	if err := h.openSealed(b, CommandDoViewChange); err != nil {
		return err
	}
	h.Op, h.Commit, h.Group = le.Uint64(b[128:]), le.Uint64(b[136:]), le.Uint64(b[144:])
	h.LogView, h.Flags = le.Uint32(b[152:]), b[156]
	h.Nack, h.Present = DecodeU128(b[224:]), DecodeU128(b[240:])
	if h.Release != 0 || h.LogView > h.View || h.Commit > h.Op {
		return ErrField
	}
	count, err := suffixCount(h.Size)
	if err != nil {
		return err
	}
	if !h.Nack.below(count) || !h.Present.below(count) {
		return ErrField
	}
	return nil
}

// Put writes the sealed frame header to the first 256 bytes of b. Size and ChecksumBody describe the
// suffix (SuffixChecksum).
func (h *DoViewChangeHeader) Put(b []byte) {
	h.start(b, CommandDoViewChange)
	le.PutUint64(b[128:], h.Op)
	le.PutUint64(b[136:], h.Commit)
	le.PutUint64(b[144:], h.Group)
	le.PutUint32(b[152:], h.LogView)
	b[156] = h.Flags
	h.Nack.Put(b[224:])
	h.Present.Put(b[240:])
	Seal(b)
}

// StartViewHeader announces the log of the view in its preamble, or answers a probe (command 12); its
// body is a Suffix, possibly empty.
type StartViewHeader struct {
	Preamble
	Op          uint64
	Commit      uint64
	Group       uint64
	Incarnation U128 // echo of the probe's, else 0
}

// Decode reads the header from the first 256 bytes of b: ErrShort, ErrCommand, ErrSeal, ErrField, or
// ErrSize when the size is not that of a suffix.
func (h *StartViewHeader) Decode(b []byte) error {
	if err := h.openSealed(b, CommandStartView); err != nil {
		return err
	}
	h.Op, h.Commit, h.Group = le.Uint64(b[128:]), le.Uint64(b[136:]), le.Uint64(b[144:])
	h.Incarnation = DecodeU128(b[240:])
	if h.Release != 0 || h.Commit > h.Op {
		return ErrField
	}
	_, err := suffixCount(h.Size)
	return err
}

// Put writes the sealed frame header to the first 256 bytes of b.
func (h *StartViewHeader) Put(b []byte) {
	h.start(b, CommandStartView)
	le.PutUint64(b[128:], h.Op)
	le.PutUint64(b[136:], h.Commit)
	le.PutUint64(b[144:], h.Group)
	h.Incarnation.Put(b[240:])
	Seal(b)
}

// RequestStartViewHeader asks the members for the current view (command 17, no body).
type RequestStartViewHeader struct {
	Preamble
	Group       uint64
	Incarnation U128 // metadata: number of this boot, bit 0 set; partitions: 0
}

// Decode reads the header from the first 256 bytes of b: ErrShort, ErrCommand, ErrSeal or ErrField.
func (h *RequestStartViewHeader) Decode(b []byte) error {
	if err := h.openSealed(b, CommandRequestStartView); err != nil {
		return err
	}
	h.Group, h.Incarnation = le.Uint64(b[128:]), DecodeU128(b[240:])
	return h.noRelease()
}

// Put writes the sealed frame to the first 256 bytes of b.
func (h *RequestStartViewHeader) Put(b []byte) {
	h.start(b, CommandRequestStartView)
	le.PutUint64(b[128:], h.Group)
	h.Incarnation.Put(b[240:])
	Seal(b)
}
