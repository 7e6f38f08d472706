package wire

import (
	"bytes"
	"slices"
	"testing"
)

func collectMessages(batch []byte) []Message { return slices.Collect(Messages(batch)) }

func batchVectors() map[string]vectorCheck {
	return map[string]vectorCheck{
		"frame_single": func(t *testing.T, b []byte) {
			m, rest, err := NextMessage(b)
			if err != nil || len(rest) != 0 || m.Checksum != 0x4d12088240d3dc55 || m.ID != (U128{Lo: 1}) ||
				string(m.Payload) != "hello iggy" || len(m.UserHeaders) != 0 {
				t.Errorf("%+v, %x, %v", m, rest, err)
			}
			enc := (&NewMessage{ID: U128{Lo: 1}, Payload: []byte("hello iggy")}).appendFrame(nil, 0, 0)
			if !bytes.Equal(enc, b) {
				t.Errorf("encoded %x", enc)
			}
		},
		"batch_one_message": rebuilt(NewMessage{ID: U128{Lo: 1}, Timestamp: vectorTime, Payload: []byte("hello iggy")}),
		"batch_two_messages_headers": func(t *testing.T, b []byte) {
			m := collectMessages(b)
			if len(m) != 2 || m[0].TimestampDelta != 50 || m[1].TimestampDelta != 0 ||
				m[0].Checksum != 0x6a9bfcc649b8c7ad || m[1].Checksum != 0x7b386e3ca8990c75 {
				t.Fatalf("%+v", m)
			}
			rebuilt(
				NewMessage{m[0].ID, vectorTime + 50, m[0].Payload, m[0].UserHeaders},
				NewMessage{m[1].ID, vectorTime, m[1].Payload, m[1].UserHeaders},
			)(t, b)
		},
		"batch_three_messages_producer": func(t *testing.T, b []byte) {
			m := collectMessages(b)
			if len(m) != 3 {
				t.Fatalf("%+v", m)
			}
			var again []NewMessage
			for _, m := range m {
				again = append(again, NewMessage{m.ID, 2000 + uint64(m.TimestampDelta), m.Payload, m.UserHeaders})
			}
			rebuilt(again...)(t, b)
		},
		"batch_three_messages_stamped": func(t *testing.T, b []byte) {
			stamped := bytes.Clone(vectorBytes(t, "batch_three_messages_producer"))
			StampBatch(stamped, 2, 500, 9000)
			if !bytes.Equal(stamped, b) || VerifyBatch(b) != nil {
				t.Errorf("stamped\n %x, want\n %x", stamped, b)
			}
			var h BatchHeader
			if err := h.Decode(b); err != nil || h.Partition != 2 || h.BaseOffset != 500 || h.BaseTimestamp != 9000 ||
				h.OriginTimestamp != 2000 || h.Length != 421 || h.MessageCount != 3 || h.Checksum != 0xc7976d60577872e3 {
				t.Errorf("%+v, %v", h, err)
			}
			again := make([]byte, BatchHeaderSize)
			h.Put(again)
			if !bytes.Equal(again, b[:BatchHeaderSize]) {
				t.Errorf("header %x", again)
			}
		},
		"batch_sliced_tail":   sliced(1, 2),
		"batch_sliced_middle": sliced(1, 1),

		"poll_reply_sliced":      polled(PollHeader{2, 502, 2}, []uint64{501, 502}, []uint64{9000, 9000}),
		"poll_reply_two_records": polled(PollHeader{2, 503, 3}, []uint64{501, 502, 503}, nil),
		"poll_reply_empty":       polled(PollHeader{}, nil, nil),
		"poll_reply_resync":      polled(PollHeader{Partition: PartitionResync}, nil, nil),
		"golden_poll_body":       polled(PollHeader{3, 101, 2}, []uint64{100, 101}, []uint64{5000, 5000}),

		"batch_bad_reserved_header":               refused(verified, CodeInvalidCommand),
		"batch_bad_reserved_frame":                refused(verified, CodeInvalidCommand),
		"batch_bad_reserved_frame_valid_checksum": refused(verified, CodeInvalidCommand),
		"batch_bad_payload_bit":                   refused(verified, CodeInvalidMessageChecksum),
		"batch_bad_batch_checksum":                refused(verified, CodeInvalidBatchChecksum),
		"batch_zero_messages":                     refused(verified, CodeInvalidCommand),
		"batch_trailing_byte":                     refused(verified, CodeInvalidCommand),
	}
}

func verified(b []byte) (struct{}, error) { return struct{}{}, VerifyBatch(b) }

// rebuilt checks that the batch is sound and that messages build it.
func rebuilt(messages ...NewMessage) vectorCheck {
	return func(t *testing.T, b []byte) {
		if err := VerifyBatch(b); err != nil {
			t.Error(err)
		}
		front := []byte("front")
		got, err := AppendBatch(front, messages)
		if err != nil || !bytes.Equal(got[len(front):], b) {
			t.Errorf("built\n %x, %v, want\n %x", got[len(front):], err, b)
		}
	}
}

// sliced checks both ways of slicing the stamped batch of three.
func sliced(first, count uint32) vectorCheck {
	return func(t *testing.T, b []byte) {
		stamped := vectorBytes(t, "batch_three_messages_stamped")
		if got := SliceBatch(nil, stamped, first, count); !bytes.Equal(got, b) {
			t.Errorf("sliced\n %x, want\n %x", got, b)
		}
		if got := CutBatch(stamped, first, count); !bytes.Equal(got, b) {
			t.Errorf("cut\n %x, want\n %x", got, b)
		}
		if err := VerifyBatch(b); err != nil {
			t.Error(err)
		}
	}
}

// polled checks a poll's reply: its header and the offsets and server times of its messages.
func polled(want PollHeader, offsets, times []uint64) vectorCheck {
	return func(t *testing.T, b []byte) {
		h, run, err := DecodePoll(b)
		put := make([]byte, PollHeaderSize)
		h.Put(put)
		if err != nil || h != want || !bytes.Equal(h.Append(nil), b[:PollHeaderSize]) || !bytes.Equal(put, b[:PollHeaderSize]) {
			t.Fatalf("%+v, %v, want %+v", h, err, want)
		}
		if count, err := CountMessages(run); err != nil || count != uint64(h.MessagesCount) {
			t.Errorf("%d messages, %v", count, err)
		}
		var gotOffsets, gotTimes []uint64
		for len(run) > 0 {
			header, batch, rest, err := NextBatch(run)
			if err != nil || VerifyBatch(batch) != nil {
				t.Fatal(err, VerifyBatch(batch))
			}
			for m := range Messages(batch) {
				gotOffsets = append(gotOffsets, header.BaseOffset+uint64(m.OffsetDelta))
				gotTimes = append(gotTimes, header.BaseTimestamp)
			}
			run = rest
		}
		if !slices.Equal(gotOffsets, offsets) || times != nil && !slices.Equal(gotTimes, times) {
			t.Errorf("offsets %v, times %v; want %v, %v", gotOffsets, gotTimes, offsets, times)
		}
	}
}
