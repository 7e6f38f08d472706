package wire

// SliceBatch appends to dst the record that serves count messages of batch b from index first on, as
// a poll does when only part of a batch is selected: b's header with length, count and checksum of
// the kept frames, and those frames unchanged, deltas included (client-wire §14.1). The whole batch
// is appended as it is. b is verified and first+count within its messages.
func SliceBatch(dst, b []byte, first, count uint32) []byte {
	if uint64(count) == uint64(le.Uint32(b[batchCount:])) {
		return append(dst, b...)
	}
	start, end := frameRange(b, first, count)
	at := len(dst)
	dst = append(append(dst, b[:BatchHeaderSize]...), b[start:end]...)
	sealSlice(dst[at:], count)
	return dst
}

// CutBatch is SliceBatch in place: it returns the part of b that is the record, with its header
// moved up against the first kept frame. Bytes of b in front of the record are garbage afterwards.
func CutBatch(b []byte, first, count uint32) []byte {
	if uint64(count) == uint64(le.Uint32(b[batchCount:])) {
		return b
	}
	start, end := frameRange(b, first, count)
	slice := b[start-BatchHeaderSize : end : end]
	copy(slice, b[:BatchHeaderSize])
	sealSlice(slice, count)
	return slice
}

func sealSlice(slice []byte, count uint32) {
	le.PutUint64(slice[batchLength:], uint64(len(slice)))
	le.PutUint32(slice[batchCount:], count)
	SealBatch(slice)
}

// frameRange is where the frames first to first+count-1 of batch b begin and end.
func frameRange(b []byte, first, count uint32) (start, end int) {
	start = BatchHeaderSize
	for range first {
		start += mustFrameSize(b[start:])
	}
	end = start
	for range count {
		end += mustFrameSize(b[end:])
	}
	return start, end
}

func mustFrameSize(b []byte) int {
	size := frameSize(b)
	if size == 0 {
		panic("wire: slicing a batch beyond its frames")
	}
	return size
}

// NextBatch splits off the batch at the front of a run of batches, as a poll's reply and a segment
// hold them. Its error, CodeInvalidCommand, says that the front is no batch header or its batch is
// cut. It does not verify frames or checksums.
func NextBatch(run []byte) (h BatchHeader, batch, rest []byte, err error) {
	if err := h.Decode(run); err != nil {
		return h, nil, run, err
	}
	if h.Length > uint64(len(run)) {
		return h, nil, run, CodeInvalidCommand
	}
	return h, run[:h.Length:h.Length], run[h.Length:], nil
}

// CountMessages adds up the messages of a run of batches, which must tile it.
func CountMessages(run []byte) (count uint64, err error) {
	for len(run) > 0 {
		h, _, rest, err := NextBatch(run)
		if err != nil {
			return 0, err
		}
		count += uint64(h.MessageCount)
		run = rest
	}
	return count, nil
}
