package control

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// record keeps what was published, and when. While it is stuck, Publish does not return.
type record struct {
	mu       sync.Mutex
	messages []Message
	subjects []string
	times    []time.Time
	stuck    chan struct{}
	closed   bool
}

func (r *record) Publish(subject string, payload []byte) error {
	if r.stuck != nil {
		<-r.stuck
	}
	m, err := Decode(payload)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages, r.subjects, r.times = append(r.messages, m), append(r.subjects, subject), append(r.times, time.Now())
	return nil
}

func (r *record) Subscribe(string) (*Subscription, error) { return nil, nil }
func (r *record) Listening() bool                         { return true }
func (r *record) Close()                                  { r.closed = true }

func (r *record) on(c Channel) (found []Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, m := range r.messages {
		if m.Source.Subject(c) == r.subjects[i] {
			found = append(found, m)
		}
	}
	return found
}

func publisher(b Bus, metrics *Metrics) *Publisher {
	return NewPublisher(PublisherConfig{
		Source: Source{Cluster: "c.1", Role: RolePartition}, Buses: []Bus{b}, Metrics: metrics,
		Measure: func() *Snapshot { return &Snapshot{Led: 7} },
	})
}

// TestPace shows that a process says something at most every 100 ms, whatever happens, and that no channel
// keeps another from being heard.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &record{}
		p := publisher(r, nil)
		for i := range 5000 { // for five seconds
			p.Say(Event{Kind: Leads, Groups: []string{GroupName(1, 2, uint32(i))}, View: uint32(i)})
			p.Say(Event{Kind: Evicted, Reason: "stale"})
			time.Sleep(time.Millisecond)
		}
		p.Close()
		if n := len(r.messages); n < 48 || n > 52 {
			t.Errorf("%d messages in five seconds", n)
		}
		var leads, evicted uint64
		for i, m := range r.messages {
			if m.Seq != uint64(i+1) || m.Dropped != 0 {
				t.Errorf("message %d: seq %d, %d dropped", i, m.Seq, m.Dropped)
			}
			if i > 0 && r.times[i].Sub(r.times[i-1]) < pace {
				t.Errorf("message %d follows after %v", i, r.times[i].Sub(r.times[i-1]))
			}
			for _, e := range m.Events {
				if len(m.Events) != 1 || len(e.Groups) > MaxGroups {
					t.Errorf("not coalesced: %+v", m.Events)
				}
				switch e.Kind {
				case Leads:
					leads += e.Count
					if e.View != uint32(leads-1) {
						t.Errorf("the highest view is %d of %d", e.View, leads)
					}
				case Evicted:
					evicted += e.Count
				}
			}
		}
		if leads < 4700 || evicted < 4700 { // what waits at the end is not said
			t.Errorf("%d and %d of 5000 were told", leads, evicted)
		}
		if got := len(r.on(ChannelMetrics)); got < 4 || got > 5 {
			t.Errorf("%d snapshots in five seconds", got)
		}
	})
}

// TestStorm shows that three thousand view changes at once are one message.
func TestStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &record{}
		p := publisher(r, nil)
		p.Say(Event{Kind: Leads, Groups: []string{MetadataGroup}, View: 3})
		for i := range 3000 {
			p.Say(Event{Kind: Leads, Groups: []string{GroupName(1, 1, uint32(i))}, View: uint32(3000 - i)})
		}
		time.Sleep(900 * time.Millisecond)
		p.Close()
		var metadata, partitions uint64
		var highest uint32
		for _, m := range r.on(ChannelView) {
			for _, e := range m.Events {
				if e.Groups[0] == MetadataGroup {
					metadata += e.Count
				} else {
					partitions += e.Count
					highest = max(highest, e.View)
				}
			}
		}
		if len(r.messages) > 2 || metadata != 1 || partitions != 3000 || highest != 3000 {
			t.Errorf("%d messages tell of %d and %d view changes, up to view %d", len(r.messages), metadata, partitions, highest)
		}
	})
}

// TestStuckBus shows that nobody waits while a bus is stuck, that what waits is bounded, and that the oldest goes.
func TestStuckBus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &record{stuck: make(chan struct{})}
		metrics := NewMetrics(prometheus.NewRegistry())
		p := publisher(r, metrics)
		p.Say(Event{Kind: Ready})
		time.Sleep(pace)
		synctest.Wait() // the publisher is stuck with it
		started := time.Now()
		for i := range 200 { // no two are alike
			p.Say(Event{Kind: Moving, Progress: &Progress{Task: fmt.Sprint("move ", i), Done: uint64(i)}})
			p.Say(Event{Kind: Moving, Progress: &Progress{Task: fmt.Sprint("move ", i), Done: uint64(i) + 1}})
		}
		if time.Since(started) != 0 {
			t.Errorf("saying took %v", time.Since(started))
		}
		close(r.stuck)
		time.Sleep(300 * time.Millisecond)
		p.Close()
		moves := r.on(ChannelPlacement)
		if len(moves) != 1 || len(moves[0].Events) != maxEvents || moves[0].Dropped != 2*(200-maxEvents) {
			t.Fatalf("%d messages, the first with %d events, %d dropped", len(moves), len(moves[0].Events), moves[0].Dropped)
		}
		if got := testutil.ToFloat64(metrics.dropped); got != 2*(200-maxEvents) {
			t.Errorf("%v are counted as dropped", got)
		}
		for i, e := range moves[0].Events {
			if want := uint64(200 - maxEvents + i); e.Count != 2 || e.Progress.Done != want+1 {
				t.Errorf("event %d: count %d, %+v", i, e.Count, e.Progress)
			}
		}
	})
}

// TestCloseIsQuick shows that a stuck bus does not hold up the end of a process, and that the last word is said
// where it can be.
func TestCloseIsQuick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &record{stuck: make(chan struct{})}
		p := publisher(r, nil)
		p.Say(Event{Kind: Ready})
		time.Sleep(pace)
		synctest.Wait()
		started := time.Now()
		p.Close()
		p.Close()
		if took := time.Since(started); took > closing {
			t.Errorf("closing took %v", took)
		}
		close(r.stuck)
		synctest.Wait()

		r = &record{}
		p = publisher(r, nil)
		p.Say(Event{Kind: Ready})
		time.Sleep(pace)
		synctest.Wait()
		p.Say(Event{Kind: Evicted, Reason: "x"})
		p.Say(Event{Kind: Stopping})
		p.Close()
		last := r.messages[len(r.messages)-1]
		if len(r.messages) != 2 || last.Events[0].Kind != Stopping || !r.closed {
			t.Errorf("the last of %d messages is %+v, closed %v", len(r.messages), last, r.closed)
		}
	})
}

// TestBounds shows that whatever is said, the largest message fits a server with the configuration of deploy/nats.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &record{}
		p := publisher(r, nil)
		many := make([]string, 5000)
		for i := range many {
			many[i] = GroupName(1<<32-1, 1<<32-1, 1<<32-1)
		}
		for i := range maxEvents {
			p.Say(Event{Kind: Damaged, Groups: many, Reason: fmt.Sprint(i) + strings.Repeat("ä", 1<<20), Node: new(uint8)})
		}
		time.Sleep(2 * pace)
		p.Close()
		m := r.on(ChannelStorage)[0]
		if text, err := m.Encode(); err != nil || len(text) > 128<<10 || len(m.Events) != maxEvents || len(m.Events[0].Groups) != MaxGroups {
			t.Errorf("%d events in %d bytes, %v", len(m.Events), len(text), err)
		}
		if last := m.Events[maxEvents-1].Reason; !strings.HasPrefix(last, "63ää") || !strings.HasSuffix(last, "ä…") || len(last) > maxReason+3 {
			t.Errorf("reason %q", last)
		}
	})
}

// TestNobody shows that a process without a control plane says nothing, without a check at each place.
func TestNobody(t *testing.T) {
	var p *Publisher
	p.Say(Event{Kind: Ready})
	p.Is(3)
	p.Close()
}

// TestSource shows that a message says which node it is from, once that is known.
func TestSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &record{}
		p := publisher(r, nil)
		p.Say(Event{Kind: Starting})
		time.Sleep(2 * pace)
		p.Is(0)
		node := uint8(0)
		p.Say(Event{Kind: Registered, Node: &node})
		p.Close()
		if len(r.messages) != 2 || r.messages[0].Source.Node != nil || r.messages[1].Source.Node == nil || *r.messages[1].Source.Node != 0 {
			t.Fatalf("%+v", r.messages)
		}
		s := r.messages[1].Source
		if s.Process == "" || r.subjects[1] != "whippet.v1.c=2E1.partition."+s.Process+".node" {
			t.Errorf("subject %s of %+v", r.subjects[1], s)
		}
		if !reflect.DeepEqual(r.messages[1].Events, []Event{{Kind: Registered, At: r.messages[1].Events[0].At, Count: 1, Node: &node}}) {
			t.Errorf("events %+v", r.messages[1].Events)
		}
	})
}
