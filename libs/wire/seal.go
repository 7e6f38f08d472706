package wire

// Seal writes the frame seal of a sealed command: the widened hash of header bytes 16 to 256, in the
// checksum field (replica-wire.md §1.3). Where checksum_body is set the seal covers the body too.
func Seal(header []byte) {
	Widened(header[offChecksumBody:HeaderSize]).Put(header)
}

// VerifySeal compares the frame seal of a header of at least 256 bytes: ErrShort or ErrSeal. It proves
// integrity, not who sent the frame.
func VerifySeal(header []byte) error {
	if len(header) < HeaderSize {
		return ErrShort
	}
	if DecodeU128(header) != Widened(header[offChecksumBody:HeaderSize]) {
		return ErrSeal
	}
	return nil
}

// open reads the preamble of a header of command c. Decoders of sealed headers call it first, then
// check the seal, then their fields.
func (p *Preamble) open(b []byte, c Command) (err error) {
	if *p, err = DecodePreamble(b); err == nil && p.Command != c {
		err = ErrCommand
	}
	return err
}

// openSealed is open, then the seal.
func (p *Preamble) openSealed(b []byte, c Command) error {
	if err := p.open(b, c); err != nil {
		return err
	}
	return VerifySeal(b)
}

// start clears the header and writes the preamble with command c. A size left at 0 is that of a
// header alone.
func (p *Preamble) start(b []byte, c Command) {
	p.put(b)
	b[offCommand] = byte(c)
	if p.Size == 0 {
		le.PutUint32(b[offSize:], HeaderSize)
	}
}

// SealBody is the checksum_body of a metadata prepare: the hash of the body, an empty one included.
func SealBody(body []byte) U128 { return Widened(body) }

// GroupOf reads the group a replica-plane or routed frame belongs to from its raw header; ok is false
// when frames of this command carry none.
func GroupOf(h *Header) (group uint64, ok bool) {
	at := groupOffset[h.Command()&31]
	switch {
	case !h.Command().Known():
		return 0, false
	case at != 0:
		return le.Uint64(h[at:]), true
	}
	forwarded := h.Command() >= CommandForwardRegister && h.Command() <= CommandForwardLogoutResult
	return MetadataGroup, forwarded
}

var groupOffset = [32]uint8{
	CommandRequest: 248, CommandPrepare: 216, CommandPrepareOk: 200, CommandCommit: 168, CommandStartViewChange: 128,
	CommandDoViewChange: 144, CommandStartView: 144, CommandRequestStartView: 128, CommandRequestPrepares: 160,
	CommandRepairPrepare: 216, CommandRepairDone: 152, CommandRangeEvicted: 152, CommandRequestStateTransfer: 144,
	CommandStateTransferTarget: 152, CommandRequestStateChunk: 152, CommandStateChunk: 152,
}
