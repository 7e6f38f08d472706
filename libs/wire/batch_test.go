package wire

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"
)

// testBatch is a batch of count messages of size bytes.
func testBatch(t testing.TB, count, size int) []byte {
	t.Helper()
	messages := make([]NewMessage, count)
	for i := range messages {
		messages[i] = NewMessage{ID: U128{Lo: uint64(i)}, Timestamp: uint64(1000 + i), Payload: bytes.Repeat([]byte{byte(i)}, size)}
	}
	batch, err := AppendBatch(nil, messages)
	if err != nil {
		t.Fatal(err)
	}
	return batch
}

// checksumOf is the batch checksum by its definition, without the code under test.
func checksumOf(b []byte) uint64 {
	input := slices.Concat(b[0:40], b[48:52])
	for at := 256; at < len(b); {
		input = append(input, b[at:at+8]...)
		at += 48 + int(le.Uint32(b[at+32:])) + int(le.Uint32(b[at+36:]))
	}
	return xxh3.Hash(input)
}

// The checksum is gathered in a buffer and streamed beyond it: every count around the buffer's size
// must give the same as one hash over all of it.
func TestBatchChecksumAcrossBufferSizes(t *testing.T) {
	for _, count := range []int{1, 2, 119, 120, 121, 122, 123, 247, 248, 249, 250, 251, 378, 1000} {
		b := testBatch(t, count, 3)
		if got, want := le.Uint64(b[40:]), checksumOf(b); got != want {
			t.Errorf("%d messages: checksum %x, want %x", count, got, want)
		}
		if err := VerifyBatch(b); err != nil {
			t.Errorf("%d messages: %v", count, err)
		}
		StampBatch(b, 7, 1<<40, 99)
		if got, want := le.Uint64(b[40:]), checksumOf(b); got != want || VerifyBatch(b) != nil {
			t.Errorf("%d messages stamped: checksum %x, want %x", count, got, want)
		}
	}
}

// Any one flipped bit of a batch is noticed.
func TestVerifyBatchNoticesEveryBit(t *testing.T) {
	b := testBatch(t, 3, 5)
	for bit := range len(b) * 8 {
		b[bit/8] ^= 1 << (bit % 8)
		if VerifyBatch(b) == nil {
			t.Errorf("byte %d bit %d flipped unnoticed", bit/8, bit%8)
		}
		b[bit/8] ^= 1 << (bit % 8)
	}
}

func TestVerifyBatchCutAtEachByte(t *testing.T) {
	b := testBatch(t, 3, 5)
	for n := range b {
		if err := VerifyBatch(b[:n:n]); err != CodeInvalidCommand {
			t.Errorf("cut to %d bytes: %v", n, err)
		}
	}
}

// A count that lies is noticed although every checksum fits it: frames are left over, or missing.
func TestVerifyBatchCountsFrames(t *testing.T) {
	for _, count := range []uint32{1, 2, 4, 5} {
		b := testBatch(t, 3, 5)
		le.PutUint32(b[48:], count)
		input := slices.Concat(b[0:40], b[48:52])
		for at, left := 256, count; at < len(b) && left > 0; left-- {
			input = append(input, b[at:at+8]...)
			at += 48 + 5
		}
		le.PutUint64(b[40:], xxh3.Hash(input))
		if err := VerifyBatch(b); err != CodeInvalidCommand {
			t.Errorf("count %d of 3: %v", count, err)
		}
	}
}

// Length fields that lie are refused before anything is read through them.
func TestVerifyBatchHugeFields(t *testing.T) {
	for _, field := range []struct{ at, width int }{{32, 8}, {48, 4}, {256 + 32, 4}, {256 + 36, 4}} {
		b := testBatch(t, 2, 5)
		for i := range field.width {
			b[field.at+i] = 0xff
		}
		if err := VerifyBatch(b); err == nil {
			t.Errorf("field at %d accepted", field.at)
		}
		if _, err := CountMessages(b); err == nil && field.at < 256 {
			t.Errorf("field at %d counted", field.at)
		}
		collectMessages(b)
	}
}

// Slices verify, hold exactly the messages selected and leave them unchanged; both ways agree.
func TestSlices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		messages := rapid.SliceOfN(rapid.Custom(drawMessage), 1, 300).Draw(t, "messages")
		b, err := AppendBatch(nil, messages)
		if err != nil {
			t.Fatal(err)
		}
		StampBatch(b, 1, 500, 7)
		first := rapid.IntRange(0, len(messages)-1).Draw(t, "first")
		count := rapid.IntRange(1, len(messages)-first).Draw(t, "count")
		slice := SliceBatch(nil, b, uint32(first), uint32(count))
		if err := VerifyBatch(slice); err != nil {
			t.Fatal(err)
		}
		var h BatchHeader
		if err := h.Decode(slice); err != nil || h.BaseOffset != 500 || h.BaseTimestamp != 7 || h.MessageCount != uint32(count) {
			t.Fatalf("%+v, %v", h, err)
		}
		kept := collectMessages(slice)
		whole := collectMessages(b)[first : first+count]
		if len(kept) != count {
			t.Fatalf("%d messages kept, want %d", len(kept), count)
		}
		for i := range kept {
			if kept[i].OffsetDelta != uint32(first+i) || kept[i].Checksum != whole[i].Checksum ||
				!bytes.Equal(kept[i].Payload, messages[first+i].Payload) || !bytes.Equal(kept[i].UserHeaders, messages[first+i].UserHeaders) {
				t.Fatalf("message %d: %+v", i, kept[i])
			}
		}
		if cut := CutBatch(bytes.Clone(b), uint32(first), uint32(count)); !bytes.Equal(cut, slice) {
			t.Fatalf("cut %x, sliced %x", cut, slice)
		}
	})
}

func drawMessage(t *rapid.T) NewMessage {
	return NewMessage{
		ID:          U128{rapid.Uint64().Draw(t, "lo"), rapid.Uint64().Draw(t, "hi")},
		Timestamp:   rapid.Uint64Range(1000, 1000+1<<32-1).Draw(t, "timestamp"),
		Payload:     rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "payload"),
		UserHeaders: rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "headers"),
	}
}

func TestAppendBatchRefuses(t *testing.T) {
	if _, err := AppendBatch(nil, nil); err != CodeInvalidMessagesCount {
		t.Errorf("no messages: %v", err)
	}
	span := []NewMessage{{Timestamp: 5}, {Timestamp: 5 + 1<<32}}
	if _, err := AppendBatch(nil, span); err != CodeInvalidMessageTimestampDelta {
		t.Errorf("span of 2^32: %v", err)
	}
	span[1].Timestamp--
	if _, err := AppendBatch(nil, span); err != nil {
		t.Errorf("span of 2^32-1: %v", err)
	}
}

// The hot path allocates nothing.
func TestBatchPathAllocatesNothing(t *testing.T) {
	q := SendMessagesRequest{
		Stream: NamedID("orders"), Topic: NumericID(1), Partitioning: Partitioning{Kind: PartitioningKey, Key: []byte("key")},
		MessagesCount: 1000, Batch: testBatch(t, 1000, 100),
	}
	frame := q.Append(nil)
	into := make([]byte, 0, len(frame))
	poll := bodySample{}
	for _, s := range bodySamples(t) {
		if s.name == "PollMessages" {
			poll = s
		}
	}
	for name, f := range map[string]func(){
		"send": func() {
			q, err := DecodeSendMessages(frame)
			if err != nil || q.Verify() != nil {
				t.Error(err)
			}
			KeyIndex(q.Partitioning.Key, 3)
			StampBatch(q.Batch, 1, 2, 3)
		},
		"poll request": func() {
			if _, err := DecodePollMessages(poll.bytes); err != nil {
				t.Error(err)
			}
		},
		"slice": func() { into = SliceBatch(into[:0], q.Batch, 10, 500) },
		"messages": func() {
			for range Messages(q.Batch) {
				continue
			}
		},
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkVerifyBatch(b *testing.B) {
	for _, shape := range []struct{ count, size int }{{1, 100}, {1000, 100}, {1000, 1000}, {100, 65536}} {
		b.Run(fmt.Sprintf("%dx%d", shape.count, shape.size), func(b *testing.B) {
			batch := testBatch(b, shape.count, shape.size)
			b.SetBytes(int64(len(batch)))
			b.ReportAllocs()
			for b.Loop() {
				if err := VerifyBatch(batch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkStampBatch(b *testing.B) {
	for _, shape := range []struct{ count, size int }{{1, 100}, {1000, 100}, {1000, 1000}, {100, 65536}} {
		b.Run(fmt.Sprintf("%dx%d", shape.count, shape.size), func(b *testing.B) {
			batch := testBatch(b, shape.count, shape.size)
			b.SetBytes(int64(len(batch)))
			b.ReportAllocs()
			for b.Loop() {
				StampBatch(batch, 1, 2, 3)
			}
		})
	}
}
