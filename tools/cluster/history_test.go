//go:build linux

package cluster

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// event is one request of one client, and what became of it. Times are nanoseconds since the history began.
type event struct {
	Client int    `json:"client"`
	Node   int    `json:"node"`
	Phase  string `json:"phase"`
	Kind   kind   `json:"kind"`
	Object string `json:"object"`
	Call   int64  `json:"call"`
	Return int64  `json:"return"`
	Result result `json:"result"`

	Value  uint64   `json:"value,omitempty"`  // message of a send; offset of a store; first offset asked for by a poll
	Count  int      `json:"count,omitempty"`  // messages asked for by a poll
	Offset uint64   `json:"offset,omitempty"` // where a send was put; the offset a read found; of a poll's first message
	Found  []uint64 `json:"found,omitempty"`  // messages of a poll
	Error  string   `json:"error,omitempty"`
}

type kind string

const (
	sendKind   kind = "send"
	pollKind   kind = "poll"
	storeKind  kind = "store"
	offsetKind kind = "offset"
	createKind kind = "create"
	deleteKind kind = "delete"
	existsKind kind = "exists"
)

// result is what a client knows of its request.
type result string

const (
	done    result = "done"
	no      result = "no"      // it exists already, it does not exist
	refused result = "refused" // certainly without effect
	unknown result = "unknown" // has happened, will happen, or never will
	wrong   result = "wrong"   // an answer nobody should have given
)

func (e *event) String() string {
	span := fmt.Sprintf("%10.3f-%10.3f ms, client %2d, node %d, %s", float64(e.Call)/1e6, float64(e.Return)/1e6, e.Client, e.Node, e.Phase)
	return fmt.Sprintf("%s: %s", span, e.text())
}

func (e *event) text() string {
	text := fmt.Sprintf("%s %s", e.Kind, e.Object)
	switch e.Kind {
	case sendKind:
		text += fmt.Sprintf(" message %d -> offset %d", e.Value, e.Offset)
	case pollKind:
		text += fmt.Sprintf(" from %d, at most %d -> %d from %d on: %v", e.Value, e.Count, len(e.Found), e.Offset, e.Found)
	case storeKind:
		text += fmt.Sprintf(" %d", e.Value)
	case offsetKind:
		text += fmt.Sprintf(" -> %d", e.Offset)
	}
	return strings.TrimSpace(fmt.Sprintf("%s: %s %s", text, e.Result, e.Error))
}

// history is what all clients saw.
type history struct {
	began time.Time

	mu     sync.Mutex
	phase  string
	events []*event
}

func newHistory() *history { return &history{began: time.Now()} }

func (h *history) now() int64 { return time.Since(h.began).Nanoseconds() }

// enter begins a phase: what is called from now on counts to it.
func (h *history) enter(phase string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.phase = phase
}

// call begins a request.
func (h *history) call(e event) *event {
	h.mu.Lock()
	defer h.mu.Unlock()
	e.Phase, e.Call = h.phase, h.now()
	return &e
}

// end ends a request.
func (h *history) end(e *event, r result, err error) {
	e.Return, e.Result = h.now(), r
	if err != nil {
		e.Error = err.Error()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

// write puts the history into a directory that stays, a line of JSON for each event.
func (h *history) write(dir string) (string, error) {
	path := filepath.Join(dir, "history.jsonl")
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	w := bufio.NewWriter(f)
	lines := json.NewEncoder(w)
	for _, e := range h.events {
		if err := lines.Encode(e); err != nil {
			_ = f.Close()
			return "", err
		}
	}
	if err := w.Flush(); err != nil {
		_ = f.Close()
		return "", err
	}
	return path, f.Close()
}

// table sums up the phases in the order in which they began.
func (h *history) table(t *testing.T) {
	type sum struct {
		count            map[kind]int
		refused, unknown int
		longest          time.Duration
	}
	sums, names := map[string]*sum{}, []string{}
	for _, e := range h.events {
		s := sums[e.Phase]
		if s == nil {
			s = &sum{count: map[kind]int{}}
			sums[e.Phase], names = s, append(names, e.Phase)
		}
		switch e.Result {
		case done, no:
			s.count[e.Kind]++
			s.longest = max(s.longest, time.Duration(e.Return-e.Call))
		case refused:
			s.refused++
		case unknown:
			s.unknown++
		}
	}
	t.Logf("%-36s %6s %6s %6s %6s %7s %8s %8s %10s", "phase", "sends", "polls", "stores", "offsets", "streams", "refused", "unknown", "longest ms")
	for _, name := range names {
		s := sums[name]
		t.Logf("%-36s %6d %6d %6d %6d %7d %8d %8d %10s", name, s.count[sendKind], s.count[pollKind], s.count[storeKind], s.count[offsetKind],
			s.count[createKind]+s.count[deleteKind]+s.count[existsKind], s.refused, s.unknown, millis(s.longest))
	}
}

func millis(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000) }
