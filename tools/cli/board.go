package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/whippet-mq/whippet/libs/control"
)

const (
	// quietAfter is when a process that says nothing is shown as quiet, forgetAfter when it is not shown any more.
	quietAfter  = 5 * time.Second
	forgetAfter = time.Minute
)

// board is what is known of the processes of a cluster from what they said.
type board struct {
	processes map[string]*told // by role and address
	events    []string         // the last ones, as lines
	missed    uint64           // messages that did not arrive
}

// told is what one process said last.
type told struct {
	source  control.Source
	figures *control.Snapshot
	seq     uint64
	at      time.Time
	stopped bool
}

func newBoard() *board { return &board{processes: make(map[string]*told)} }

// shownEvents is how many events a board remembers.
const shownEvents = 8

// hear takes a message in.
func (b *board) hear(m control.Message, now time.Time) {
	s := &m.Source
	key := s.Role + " " + s.Host + " " + s.Ops
	t := b.processes[key]
	if t == nil || t.source.Process != s.Process {
		if s.Node != nil { // a node that came back on another port, or another host
			b.forget(func(other *told) bool {
				return other.source.Node != nil && other.source.Role == s.Role && *other.source.Node == *s.Node
			})
		}
		t = &told{}
		b.processes[key] = t
	} else if m.Seq > t.seq+1 {
		b.missed += m.Seq - t.seq - 1
	}
	t.source, t.seq, t.at = m.Source, m.Seq, now
	if m.Metrics != nil {
		t.figures = m.Metrics
	}
	for i := range m.Events {
		t.stopped = t.stopped || m.Events[i].Kind == control.Stopping
		b.events = append(b.events, eventLine(s, &m.Events[i]))
	}
	b.events = b.events[max(0, len(b.events)-shownEvents):]
}

func (b *board) forget(gone func(*told) bool) {
	for key, t := range b.processes {
		if gone(t) {
			delete(b.processes, key)
		}
	}
}

// rows are the processes that gave figures, those of one role together.
func (b *board) rows(now time.Time) list {
	b.forget(func(t *told) bool {
		return now.Sub(t.at) > forgetAfter || t.stopped && now.Sub(t.at) > quietAfter
	})
	var all []*told
	for _, t := range b.processes {
		if t.figures != nil {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b *told) int {
		return cmp.Or(cmp.Compare(a.source.Role, b.source.Role), cmp.Compare(nodeText(&a.source), nodeText(&b.source)), cmp.Compare(a.source.Ops, b.source.Ops))
	})
	rows := make(list, 0, len(all))
	for _, t := range all {
		rows = append(rows, t.row(now))
	}
	return rows
}

// row shows a process.
func (t *told) row(now time.Time) record {
	f := t.figures
	state := "ok"
	switch {
	case t.stopped:
		state = "stopped"
	case now.Sub(t.at) > quietAfter:
		state = "quiet for " + now.Sub(t.at).Round(time.Second).String()
	case f.DiskLow > 0:
		state = "disk full"
	}
	latency := func(of string) delay {
		l, measured := f.Latencies[of]
		return delay{l, measured}
	}
	commit := latency("commit")
	if !commit.measured {
		commit = latency("metadata")
	}
	view := any(amount(0))
	if f.MetadataPrimary > 0 {
		view = plain(f.MetadataView)
	}
	return record{
		{"role", t.source.Role}, {"node", nodeText(&t.source)}, {"state", state}, {"messages", rate(f.Messages)},
		{"requests", rate(f.Requests)}, {"refused", rate(f.Refused)}, {"in", byteRate(f.BytesIn)}, {"out", byteRate(max(f.BytesOut, f.Polled))},
		{"send_ms", latency("send")}, {"poll_ms", latency("poll")}, {"commit_ms", commit},
		{"leads", amount(f.Led + f.MetadataPrimary)}, {"hosts", amount(f.Hosted)}, {"unsettled", amount(f.Unsettled)},
		{"view", view}, {"view_changes", amount(f.ViewChanges)}, {"lag", amount(f.Lag)}, {"clients", amount(f.Connections)},
		{"stored", space(f.Stored)}, {"buffers", space(f.BufferUsed)}, {"memory", space(f.Memory)},
		{"cpu", share(f.CPU)}, {"ops", t.source.Ops},
	}
}

func nodeText(s *control.Source) string {
	if s.Node == nil {
		return "-"
	}
	return fmt.Sprint(*s.Node)
}

// total is what all processes are together, in two lines.
func (b *board) total(now time.Time) string {
	var f control.Snapshot
	quiet, clusters, primary := 0, map[string]bool{}, "none"
	for _, t := range b.processes {
		clusters[t.source.Cluster] = true
		if now.Sub(t.at) > quietAfter {
			quiet++
			continue
		}
		if t.figures == nil {
			continue
		}
		f.Requests += t.figures.Requests
		f.BytesIn += t.figures.BytesIn
		f.BytesOut += t.figures.BytesOut
		f.Connections += t.figures.Connections
		f.Led += t.figures.Led
		f.Lag += t.figures.Lag
		if t.figures.MetadataPrimary > 0 {
			primary = fmt.Sprintf("%s in view %.0f", who(&t.source), t.figures.MetadataView)
		}
	}
	processes := "1 process"
	if n := len(b.processes); n != 1 {
		processes = fmt.Sprintf("%d processes", n)
	}
	names := strings.Join(slices.Sorted(maps.Keys(clusters)), ", ")
	return fmt.Sprintf("%s: %s, %d quiet; metadata led by %s\n%v requests/s, %v in, %v out, %v clients, %v partitions led, lag %v",
		names, processes, quiet, primary, rate(f.Requests), byteRate(f.BytesIn), byteRate(f.BytesOut), amount(f.Connections), amount(f.Led), amount(f.Lag))
}

// Values of rows with a form of their own in tables. All are 0 for what a role does not have.
type (
	rate     float64 // a second
	byteRate float64 // bytes a second
	amount   float64
	share    float64 // of a processor
	space    float64 // bytes
	plain    float64 // a whole number, 0 too
)

// delay is a latency that may not have been measured.
type delay struct {
	of       control.Latency // seconds
	measured bool
}

func (r rate) String() string {
	switch {
	case r == 0:
		return "-"
	case r < 10:
		return fmt.Sprintf("%.1f", float64(r))
	}
	return amount(r).String()
}

func (r byteRate) String() string {
	if r == 0 {
		return "-"
	}
	return bytesCount(r).String() + "/s"
}

func (a amount) String() string {
	switch {
	case a == 0:
		return "-"
	case a >= 1e6:
		return fmt.Sprintf("%.1fM", float64(a)/1e6)
	case a >= 1e4:
		return fmt.Sprintf("%.1fk", float64(a)/1e3)
	}
	return fmt.Sprintf("%.0f", float64(a))
}

func (p plain) String() string { return fmt.Sprintf("%.0f", float64(p)) }

func (s space) String() string {
	if s == 0 {
		return "-"
	}
	return bytesCount(s).String()
}

func (s share) String() string { return fmt.Sprintf("%.0f%%", 100*float64(s)) }

// String is the median and the 99th percentile in milliseconds.
func (d delay) String() string {
	if !d.measured {
		return "-"
	}
	return fmt.Sprintf("%.3g/%.3g", 1e3*d.of.P50, 1e3*d.of.P99)
}

// MarshalJSON writes seconds, null for what was not measured.
func (d delay) MarshalJSON() ([]byte, error) {
	if !d.measured {
		return []byte("null"), nil
	}
	return json.Marshal(d.of)
}

// weight is what a row is sorted by.
func weight(v any) float64 {
	switch v := v.(type) {
	case rate:
		return float64(v)
	case byteRate:
		return float64(v)
	case amount:
		return float64(v)
	case share:
		return float64(v)
	case plain:
		return float64(v)
	case space:
		return float64(v)
	case delay:
		return v.of.P99
	}
	return 0
}
