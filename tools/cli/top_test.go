package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/control"
)

func node(n uint8) *uint8 { return &n }

// said is a message of a process with these figures.
func said(role, process, ops string, id *uint8, seq uint64, f *control.Snapshot, events ...control.Event) control.Message {
	return control.Message{
		V: control.Version, Seq: seq, Metrics: f, Events: events,
		Source: control.Source{Cluster: "c", Role: role, Process: process, Ops: ops, Node: id},
	}
}

func rowsOf(t *testing.T, b *board, now time.Time) (rows []map[string]any) {
	t.Helper()
	text, err := json.Marshal(b.rows(now))
	if err == nil {
		err = json.Unmarshal(text, &rows)
	}
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestBoard shows what becomes of processes that speak, fall silent, stop, and come back elsewhere.
func TestBoard(t *testing.T) {
	b, now := newBoard(), time.Unix(1000, 0)
	b.hear(said("partition", "a", "h:1", node(4), 1, &control.Snapshot{Led: 3}), now)
	b.hear(said("partition", "b", "h:2", node(5), 1, &control.Snapshot{Led: 7, DiskLow: 1}), now)
	b.hear(said("front-door", "c", "h:3", nil, 1, &control.Snapshot{Requests: 20, Latencies: map[string]control.Latency{"send": {P50: 0.001, P99: 0.0205}}}), now)
	b.hear(said("metadata", "d", "h:4", node(0), 1, nil, control.Event{Kind: control.Ready, Count: 1}), now)
	rows := rowsOf(t, b, now)
	if len(rows) != 3 || rows[0]["role"] != "front-door" || rows[1]["node"] != "4" || rows[2]["state"] != "disk full" || rows[2]["leads"] != 7.0 {
		t.Fatalf("rows %v", rows)
	}
	if send := rows[0]["send_ms"].(map[string]any); send["p99"] != 0.0205 || rows[0]["poll_ms"] != nil {
		t.Errorf("latencies %v, %v", send, rows[0]["poll_ms"])
	}

	// Node 4 comes back at another port; messages of node 5 are lost; the front-door says nothing more.
	now = now.Add(6 * time.Second)
	b.hear(said("partition", "e", "h:9", node(4), 1, &control.Snapshot{Led: 1}), now)
	b.hear(said("partition", "b", "h:2", node(5), 5, &control.Snapshot{Led: 7}), now)
	rows = rowsOf(t, b, now)
	if len(rows) != 3 || rows[0]["state"] != "quiet for 6s" || rows[1]["ops"] != "h:9" || rows[2]["state"] != "ok" || b.missed != 3 {
		t.Errorf("%d messages missed, rows %v", b.missed, rows)
	}
	if total := b.total(now); !strings.HasPrefix(total, "c: 4 processes, 2 quiet; metadata led by none\n- requests/s") || !strings.Contains(total, "8 partitions led") {
		t.Errorf("total %q", total)
	}

	// One stops, the others are forgotten in time.
	b.hear(said("partition", "b", "h:2", node(5), 6, nil, control.Event{Kind: control.Stopping, Count: 1}), now)
	if rows = rowsOf(t, b, now); rows[2]["state"] != "stopped" {
		t.Errorf("rows %v", rows)
	}
	if rows = rowsOf(t, b, now.Add(quietAfter+time.Second)); len(rows) != 2 {
		t.Errorf("rows %v", rows)
	}
	if rows = rowsOf(t, b, now.Add(2*forgetAfter)); len(rows) != 0 || len(b.events) != 2 {
		t.Errorf("rows %v, events %q", rows, b.events)
	}
}

// TestTopKeys sorts by columns, turns the order and ends.
func TestTopKeys(t *testing.T) {
	tt, now := &top{board: newBoard()}, time.Unix(1000, 0)
	tt.board.hear(said("partition", "a", "h:1", node(4), 1, &control.Snapshot{Messages: 5, Led: 9, Stored: 2048}), now)
	tt.board.hear(said("partition", "b", "h:2", node(5), 1, &control.Snapshot{Messages: 20000, Led: 2}), now)
	first := func() string {
		text := string(tt.text(now, tt.board.rows(now)))
		table := strings.Split(text[strings.Index(text, "ROLE"):], "\n")
		return strings.Fields(table[1])[1]
	}
	if first() != "4" {
		t.Error("not sorted by role and node")
	}
	if !tt.key('s') || tt.column != "messages" || first() != "5" {
		t.Errorf("sorted by %q, node %s is first", tt.column, first())
	}
	if !tt.key('r') || first() != "4" {
		t.Error("the order does not turn")
	}
	seen := 1
	for tt.column != "" {
		first()
		tt.key('s')
		seen++
	}
	if seen != 5 { // messages, leads, stored, cpu, and back
		t.Errorf("%d keys go round all columns", seen)
	}
	if text := string(tt.text(now, tt.board.rows(now))); strings.Contains(text, "CLIENTS") || !strings.Contains(text, "2.0 KiB") || !strings.Contains(text, "20.0k") {
		t.Errorf("columns without anything in them are shown, or others are not:\n%s", text)
	}
	for _, k := range []byte{'q', 3} {
		if tt.key(k) {
			t.Errorf("%d does not end it", k)
		}
	}
	if cut("abcdef", 4) != "abc…" || cut("äbc", 3) != "äbc" {
		t.Error("lines are not cut to the width of the terminal")
	}
}

// TestDraw fills a terminal and no more of it than there is.
func TestDraw(t *testing.T) {
	tt := &top{board: newBoard()}
	for i := range uint8(60) {
		tt.board.hear(said("partition", fmt.Sprint("p", i), fmt.Sprint("h:", i), node(i), 1, &control.Snapshot{Led: 1}), time.Now())
	}
	screen, err := os.Create(filepath.Join(t.TempDir(), "screen"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = screen.Close() }()
	tt.draw(screen)
	text, err := os.ReadFile(screen.Name())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\r\n")
	if len(lines) != 40 || !strings.HasPrefix(lines[0], "\x1b[H") || !strings.Contains(lines[39], "q: end") { // as if it had 40
		t.Errorf("%d lines:\n%s", len(lines), text)
	}
}

// TestEventLines has a sentence for every kind of event.
func TestEventLines(t *testing.T) {
	s := &control.Source{Role: "partition", Node: node(4), Version: "v1"}
	for _, k := range control.Kinds {
		e := control.Event{Kind: k.Kind, Count: 2, Node: node(7), Groups: []string{"1/2/3", "1/2/4"}, Reason: "why", View: 3}
		if line := sentence(s, &e); line == string(k.Kind)+": why" {
			t.Errorf("%s has no sentence: %q", k.Kind, line)
		}
	}
	for want, e := range map[string]control.Event{
		"leads the metadata now (view 3)":                              {Kind: control.Leads, Count: 1, Groups: []string{"metadata"}, View: 3},
		"leads partition 1/2/3 now (view 0)":                           {Kind: control.Leads, Count: 1, Groups: []string{"1/2/3"}},
		"leads 3000 partitions (1/2/3, 1/2/4, …) no more (view 9)":     {Kind: control.Follows, Count: 3000, Groups: []string{"1/2/3", "1/2/4"}, View: 9},
		"does not hear node 7 any more":                                {Kind: control.Silent, Count: 1, Node: node(7)},
		"ended 1 session: StaleClient":                                 {Kind: control.Evicted, Count: 1, Reason: "StaleClient"},
		"move 1/2/0: copying, 1.0 MiB of 4.0 MiB (25%), 3s left":       {Kind: control.Moving, Progress: &control.Progress{Task: "move 1/2/0", Phase: "copying", Done: 1 << 20, Total: 4 << 20, Left: 3e6}},
		"of_a_later_version: why":                                      {Kind: "of_a_later_version", Reason: "why"},
		"could not fetch partition 1/2/3 from node 7: connection lost": {Kind: control.TransferFailed, Count: 1, Node: node(7), Groups: []string{"1/2/3"}, Reason: "connection lost"},
		"the metadata can not be read: checksum":                       {Kind: control.Damaged, Count: 1, Groups: []string{"metadata"}, Reason: "checksum"},
	} {
		if got := sentence(s, &e); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestTopListens shows the commands against an ops port: of a process without NATS.
func TestTopListens(t *testing.T) {
	bus := control.NewLocal()
	ops := httptest.NewServer(control.Stream(bus))
	defer ops.Close()
	p := control.NewPublisher(control.PublisherConfig{
		Source: control.Source{Cluster: "c", Role: control.RoleServer, Ops: "here:1"}, Buses: []control.Bus{bus},
		Measure: func() *control.Snapshot { return &control.Snapshot{Requests: 12} },
	})
	defer p.Close()
	address := strings.TrimPrefix(ops.URL, "http://")
	s := &shell{t, map[string]string{}, t.TempDir()}
	out, errs, code := s.run("", "top", "--once", "--address", address)
	if code != exitDone || !strings.Contains(out, "here:1") || !strings.Contains(out, "REQUESTS") {
		t.Errorf("top: %d %s%s", code, out, errs)
	}
	if out, errs, code = s.run("", "top", "--once", "--address", address, "--cluster", "d"); code != exitFailed || !strings.Contains(errs, "no process said anything") {
		t.Errorf("top of another cluster: %d %s%s", code, out, errs)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	done := make(chan struct{})
	go func() { // whenever it listens
		defer close(done)
		for range 100 {
			<-tick.C
			p.Say(control.Event{Kind: control.Evicted, Reason: "x"})
		}
	}()
	out, errs, code = s.run("", "cluster", "events", "--for", "1s", "-o", "json", "--address", address)
	var e struct {
		Source control.Source
		Kind   control.Kind
		Count  int
	}
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&e); err != nil || code != exitDone || e.Kind != control.Evicted || e.Source.Role != control.RoleServer || e.Count < 1 {
		t.Errorf("events: %d %s%s: %+v, %v", code, out, errs, e, err)
	}
	<-done
	for _, args := range [][]string{{"top", "--once", "--address", "127.0.0.1:1"}, {"cluster", "events", "--nats", "nats://127.0.0.1:1"}} {
		if _, errs, code := s.run("", args...); code != exitConnection || !strings.Contains(errs, "refused") && !strings.Contains(errs, "no servers") {
			t.Errorf("%v: %d %s", args, code, errs)
		}
	}
}

// TestEventGaps says that messages did not arrive.
func TestEventGaps(t *testing.T) {
	var out bytes.Buffer
	a := &app{Environment: Environment{Out: &out}, output: "table"}
	seqs := map[string]uint64{}
	for _, seq := range []uint64{7, 8, 12} {
		m := said("partition", "a", "h:1", node(4), seq, nil, control.Event{Kind: control.Ready, Count: 1})
		if err := a.printEvents(&m, seqs); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 4 || !strings.HasSuffix(lines[2], "partition 4  3 messages did not arrive") {
		t.Errorf("%q", lines)
	}
}
