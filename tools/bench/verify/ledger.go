package verify

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// Kind says what an Event is about. Kinds with a question mark are written before a request, the
// others after its acknowledgement.
type Kind string

const (
	KindRun      Kind = "run"    // Number identifies the run; the first line
	KindTopic    Kind = "topic"  // a topic with Partition partitions exists
	KindSend     Kind = "send"   // Count messages from Number on stand at Offset
	KindPurge    Kind = "purge"  // the topic is empty; messages below Number are gone for good
	KindPurging  Kind = "purge?" // the topic may be purged from now on
	KindTrimming Kind = "trim?"  // the partition's oldest segments may go from now on
	KindStore    Kind = "store"  // Consumer's offset is Offset
	KindStoring  Kind = "store?"
	KindMake     Kind = "make" // Stream exists
	KindDrop     Kind = "drop" // Stream does not exist
	KindMaking   Kind = "make?"
	KindDropping Kind = "drop?"
)

// Event is one line of a ledger.
type Event struct {
	Kind      Kind   `json:"k"`
	Stream    string `json:"s,omitempty"`
	Topic     string `json:"t,omitempty"`
	Partition uint32 `json:"p,omitempty"`
	Offset    uint64 `json:"o,omitempty"`
	Number    uint64 `json:"n,omitempty"` // message number, consecutive in a batch
	Count     int    `json:"c,omitempty"`
	Hashes    []byte `json:"h,omitempty"` // XXH3-64 of each payload, 8 bytes each
	Consumer  string `json:"u,omitempty"`
}

// Ledger is an append-only file of events and the model they make.
type Ledger struct {
	mu    sync.Mutex
	file  io.WriteCloser
	Model *Model
}

// Create starts a ledger at path, which must not exist; an empty path keeps it in memory.
func Create(path string, run uint64) (*Ledger, error) {
	l := &Ledger{Model: newModel()}
	if path != "" {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o644)
		if err != nil {
			return nil, err
		}
		l.file = f
	}
	return l, l.Note(Event{Kind: KindRun, Number: run})
}

// Note writes an event. Its error is a *Violation when the event contradicts an earlier one, else
// about the file.
func (l *Ledger) Note(e Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if _, err := l.file.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return l.Model.apply(e)
}

// Close ends the file.
func (l *Ledger) Close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// Read makes the model of a ledger file. A last line that is cut is ignored: what it would have
// said was never relied on.
func Read(path string) (*Model, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, in := newModel(), bufio.NewReaderSize(f, 1<<20)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return m, nil
		}
		if err != nil {
			return nil, err
		}
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("%s line %d: %w", path, n, err)
		}
		if err := m.apply(e); err != nil {
			return nil, fmt.Errorf("%s line %d: %w", path, n, err)
		}
	}
}
