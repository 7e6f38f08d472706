package wire

// Limits of a transferred client table, replica-wire.md §9.3.
const (
	MaxClients     = 65536
	MaxClientRing  = 5
	clientMinimum  = 53 + 4 + HeaderSize // one entry with one reply
	clientTableTag = "ICT2"
)

// ClientEntry is one client of a transferred client table.
type ClientEntry struct {
	Client            U128
	Epoch             uint64 // op of its latest Register
	UserID            uint32
	Watermark         uint64 // highest committed request number
	WatermarkChecksum U128
	Replies           [][]byte // 1..5 whole reply frames, oldest first
}

// AppendClientTable writes the CLIENT_TABLE artifact of list, in slot order, behind dst.
// Layout: "ICT2" · count:u32 · {client:u128 · epoch:u64 · user:u32 · watermark:u64 · checksum:u128 ·
// ring:u8 · {len:u32 · reply} each} each · Hash64 of everything before:u64.
func AppendClientTable(dst []byte, list []ClientEntry) []byte {
	start := len(dst)
	dst = appendU32(append(dst, clientTableTag...), uint32(len(list)))
	for i := range list {
		e := &list[i]
		dst = appendU32(appendU64(appendU128(dst, e.Client), e.Epoch), e.UserID)
		dst = appendU128(appendU64(dst, e.Watermark), e.WatermarkChecksum)
		dst = append(dst, byte(len(e.Replies)))
		for _, reply := range e.Replies {
			dst = appendStr32(dst, reply)
		}
	}
	return appendTrailer(dst, start)
}

// DecodeClientTable decodes b, which it must fill. Replies alias b.
func DecodeClientTable(b []byte) ([]ClientEntry, error) {
	r, err := openTrailer(b, clientTableTag)
	if err != nil {
		return nil, err
	}
	count := r.u32()
	if r.bad || count > MaxClients || uint64(count)*clientMinimum > uint64(len(r.rest)) {
		return nil, ErrCount
	}
	list := make([]ClientEntry, count)
	seen := make(map[U128]struct{}, count)
	for i := range list {
		if err := r.clientEntry(&list[i]); err != nil {
			return nil, err
		}
		if _, dup := seen[list[i].Client]; dup {
			return nil, ErrOrder
		}
		seen[list[i].Client] = struct{}{}
	}
	if len(r.rest) > 0 {
		return nil, ErrCount
	}
	return list, nil
}

func (r *reader) clientEntry(e *ClientEntry) error {
	e.Client, e.Epoch, e.UserID, e.Watermark, e.WatermarkChecksum = r.u128(), r.u64(), r.u32(), r.u64(), r.u128()
	ring := int(r.u8())
	if r.bad || ring == 0 || ring > MaxClientRing {
		return ErrCount
	}
	e.Replies = make([][]byte, ring)
	for i := range e.Replies {
		reply := r.blk32()
		var h ReplyHeader
		if err := h.Decode(reply); err != nil {
			return err
		}
		if int(h.Size) != len(reply) {
			return ErrSize
		}
		e.Replies[i] = reply
	}
	return nil
}
