package wire

// MaxSuffix is the most headers a view-change suffix holds.
const MaxSuffix = 128

// below reports whether no bit of u at or above n is set.
func (u U128) below(n int) bool {
	switch {
	case n >= 128:
		return true
	case n >= 64:
		return u.Hi>>(n-64) == 0
	}
	return u.Hi == 0 && u.Lo>>n == 0
}

// Bit reports bit i, least significant first.
func (u U128) Bit(i int) bool {
	switch {
	case i < 0 || i >= 128:
		return false
	case i >= 64:
		return u.Hi>>(i-64)&1 == 1
	}
	return u.Lo>>i&1 == 1
}

// WithBit returns u with bit i (0..127) set.
func (u U128) WithBit(i int) U128 {
	if i >= 64 {
		u.Hi |= 1 << (i - 64)
	} else {
		u.Lo |= 1 << i
	}
	return u
}

// suffixCount is the number of entries in a frame of size bytes, or ErrSize.
func suffixCount(size uint32) (int, error) {
	if size < HeaderSize || size%HeaderSize != 0 || size/HeaderSize-1 > MaxSuffix {
		return 0, ErrSize
	}
	return int(size/HeaderSize) - 1, nil
}

// BlankPrepare is the suffix entry of an op nothing is known of.
func BlankPrepare(op uint64) PrepareHeader { return PrepareHeader{Command: CommandPrepare, Op: op} }

// Blank reports whether h is the placeholder of an unknown op.
func (h *PrepareHeader) Blank() bool { return *h == BlankPrepare(h.Op) }

// SuffixChecksum is the checksum_body of a frame with this encoded suffix: 0 when it is empty.
func SuffixChecksum(body []byte) U128 {
	if len(body) == 0 {
		return U128{}
	}
	return Widened(body)
}

// AppendSuffix writes the headers behind dst, in the order given: head first.
func AppendSuffix(dst []byte, suffix []PrepareHeader) []byte {
	for i := range suffix {
		n := len(dst)
		dst = append(dst, make([]byte, HeaderSize)...)
		suffix[i].Put(dst[n:])
	}
	return dst
}

// DecodeSuffix reads the body of a DoViewChange or StartView with the given head and checksum_body,
// appending its entries to dst: headers of head, head-1, … (replica-wire.md §7.1). The whole body is
// refused at the first entry that is misplaced, fails its identity, does not go back in time or does
// not name the entry below it as parent. Blank entries are passed over.
func DecodeSuffix(dst []PrepareHeader, body []byte, head uint64, checksum U128) ([]PrepareHeader, error) {
	count := len(body) / HeaderSize
	switch {
	case len(body)%HeaderSize != 0 || count > MaxSuffix:
		return dst, ErrSize
	case SuffixChecksum(body) != checksum:
		return dst, ErrSeal
	case uint64(count) > head:
		return dst, ErrField
	}
	start := len(dst)
	last := ^uint64(0)
	for i := range count {
		var h PrepareHeader
		if err := h.Decode(body[i*HeaderSize:]); err != nil {
			return dst[:start], err
		}
		if h.Command != CommandPrepare {
			return dst[:start], ErrCommand
		}
		if h.Op != head-uint64(i) {
			return dst[:start], ErrField
		}
		if !h.Blank() {
			if err := h.follows(dst[start:], last); err != nil {
				return dst[:start], err
			}
			last = h.Timestamp
		}
		dst = append(dst, h)
	}
	return dst, nil
}

// follows checks h as the next lower entry below above, whose oldest known timestamp is last.
func (h *PrepareHeader) follows(above []PrepareHeader, last uint64) error {
	if !h.Checksum.IsZero() {
		if err := h.Verify(); err != nil {
			return err
		}
	}
	if h.Timestamp >= last {
		return ErrField
	}
	if n := len(above); n > 0 && !above[n-1].Blank() && !h.Checksum.IsZero() && above[n-1].Parent != h.Checksum {
		return ErrIdentity
	}
	return nil
}
