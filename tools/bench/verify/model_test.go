package verify

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
)

// sample is a ledger with three acknowledged messages at offsets 0..2 and an offset.
func sample(t *testing.T) *Model {
	l, err := Create("", 7)
	if err != nil {
		t.Fatal(err)
	}
	note := func(e Event) {
		e.Stream, e.Topic = "s", "t"
		if err := l.Note(e); err != nil {
			t.Fatal(err)
		}
	}
	note(Event{Kind: KindTopic, Partition: 2})
	send := Event{Kind: KindSend, Number: 10, Count: 3}
	for i := range uint64(3) {
		send.Hashes = binary.LittleEndian.AppendUint64(send.Hashes, wire.Hash64(l.Model.content.payload(10+i, 5)))
	}
	note(send)
	note(Event{Kind: KindStoring, Consumer: "c", Offset: 1})
	note(Event{Kind: KindStore, Consumer: "c", Offset: 1})
	note(Event{Kind: KindStoring, Consumer: "c", Offset: 2})
	return l.Model
}

var name = topicName{"s", "t"}

func (m *Model) message(offset, number uint64, size int) client.Message {
	return client.Message{Offset: offset, ID: m.content.id(number), Payload: m.content.payload(number, size)}
}

func TestModelRefusesWhatWasNotPromised(t *testing.T) {
	for text, test := range map[string]struct {
		do   func(m *Model) error
		want string
	}{
		"what was acknowledged": {func(m *Model) error { return m.observe(name, 0, m.message(1, 11, 5)) }, ""},
		"an unacknowledged one": {func(m *Model) error { return m.observe(name, 0, m.message(3, 99, 1)) }, ""},
		"another at its offset": {func(m *Model) error { return m.observe(name, 0, m.message(1, 12, 5)) }, "denoted"},
		"another length":        {func(m *Model) error { return m.observe(name, 0, m.message(1, 11, 4)) }, "length"},
		"somebody else's":       {func(m *Model) error { x := m.message(3, 99, 1); x.ID.Hi++; return m.observe(name, 0, x) }, "nobody"},
		"another message's": {func(m *Model) error {
			x := m.message(1, 11, 5)
			x.Payload = m.content.payload(12, 5)
			return m.observe(name, 0, x)
		}, "changed"},
		"an acknowledgement twice": {func(m *Model) error {
			return m.apply(Event{Kind: KindSend, Stream: "s", Topic: "t", Number: 50, Count: 1, Offset: 2})
		}, "denoted"},
		"read, then another": {func(m *Model) error {
			if err := m.observe(name, 0, m.message(3, 99, 1)); err != nil {
				return err
			}
			return m.observe(name, 0, m.message(3, 98, 1))
		}, "denoted"},
		"purged": {func(m *Model) error {
			m.apply(Event{Kind: KindPurge, Stream: "s", Topic: "t", Number: 20})
			return m.observe(name, 0, m.message(0, 19, 1))
		}, "purged"},
		"sent after the purge": {func(m *Model) error {
			m.apply(Event{Kind: KindPurge, Stream: "s", Topic: "t", Number: 20})
			return m.observe(name, 0, m.message(0, 20, 1))
		}, ""},
	} {
		err := test.do(sample(t))
		var v *Violation
		if test.want == "" && err != nil || test.want != "" && (!errors.As(err, &v) || !strings.Contains(v.Text, test.want)) {
			t.Errorf("%s: %v, want %q", text, err, test.want)
		}
	}
}

func TestModelFindsLosses(t *testing.T) {
	m := sample(t)
	if lost := m.lost(name, 0, 3); len(lost) != 0 {
		t.Errorf("lost %d although all are there", lost)
	}
	if lost := m.lost(name, 0, 1); len(lost) != 2 || lost[0] != 1 {
		t.Errorf("lost %d, want 1 and 2", lost)
	}
	m.apply(Event{Kind: KindPurging, Stream: "s", Topic: "t"})
	if lost := m.lost(name, 0, 0); len(lost) != 0 {
		t.Errorf("lost %d while a purge is under way", lost)
	}
}

func TestModelKnowsStoredOffsets(t *testing.T) {
	key := offsetKey{name, 0, "c"}
	for value, ok := range map[uint64]bool{0: false, 1: true, 2: true, 3: false} {
		if sample(t).mayStore(key, value, true) != ok {
			t.Errorf("offset %d: want %v", value, ok)
		}
	}
	if sample(t).mayStore(key, 0, false) {
		t.Error("an acknowledged offset may be absent")
	}
	if m := sample(t); !m.mayStore(offsetKey{name, 0, "other"}, 0, false) || m.mayStore(offsetKey{name, 0, "other"}, 0, true) {
		t.Error("a consumer that stored nothing must have nothing")
	}
}

func TestLedgerFileMakesTheSameModel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	l, err := Create(path, 7)
	if err != nil {
		t.Fatal(err)
	}
	l.Note(Event{Kind: KindTopic, Stream: "s", Topic: "t", Partition: 1})
	l.Note(Event{Kind: KindSend, Stream: "s", Topic: "t", Number: 4, Count: 2, Offset: 0})
	l.Note(Event{Kind: KindMake, Stream: "x"})
	l.Close()
	f, _ := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	f.WriteString(`{"k":"send","s":"s"`) // the writer died here
	f.Close()
	m, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if lost := m.lost(name, 0, 0); len(lost) != 2 || !m.streams["x"].exists || m.Acknowledged() != 2 {
		t.Errorf("lost %d, streams %v", lost, m.streams)
	}
	if _, err := Create(path, 7); err == nil {
		t.Error("a ledger was overwritten")
	}
}
