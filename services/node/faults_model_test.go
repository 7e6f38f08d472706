package node

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/whippet-mq/whippet/libs/wire"
)

// part is what a partition must hold: a history of acknowledged changes. What a recovery finds must
// be the state after one of the allowed lengths of the history, nothing else.
type part struct {
	topic      string
	number     uint32
	generation uint64   // purges of the metadata that are in the history
	past       []effect // since the last purge
	acked      int      // effects that were acknowledged
	synced     int      // effects that were acknowledged before the last background sync
}

// effect is one change of a partition.
type effect struct {
	sent  []message // appended messages
	who   consumer  // whose offset changes
	at    uint64
	raise bool // an auto-commit: never moves back
	drop  bool
}

// message is what a message's content is made from.
type message struct {
	number uint32
	size   int
}

// state is a partition's content after some effects.
type state struct {
	messages []message // by offset
	offsets  map[consumer]uint64
}

func (p *part) after(n int) state {
	s := state{offsets: map[consumer]uint64{}}
	for _, e := range p.past[:n] {
		s.messages = append(s.messages, e.sent...)
		if e.who == (consumer{}) {
			continue
		}
		if at, ok := s.offsets[e.who]; !e.raise || !ok || e.at > at {
			s.offsets[e.who] = e.at
		}
		if e.drop {
			delete(s.offsets, e.who)
		}
	}
	return s
}

// found is a partition as a recovered node shows it.
type found struct {
	messages []polled
	offsets  map[consumer]uint64
}

// differs compares what was found with a state; offsets below trimmed may be gone.
func (s state) differs(f *found, trimmed uint64) string {
	first := uint64(0)
	if len(f.messages) > 0 {
		first = f.messages[0].offset
	} else if len(s.messages) > 0 {
		first = uint64(len(s.messages))
	}
	if first > trimmed {
		return fmt.Sprintf("messages start at offset %d, trimmed up to %d", first, trimmed)
	}
	if first+uint64(len(f.messages)) != uint64(len(s.messages)) && len(f.messages) > 0 {
		return fmt.Sprintf("%d messages from offset %d, want up to %d", len(f.messages), first, len(s.messages))
	}
	for i, m := range f.messages {
		if m.offset != first+uint64(i) {
			return fmt.Sprintf("offset %d where %d is due", m.offset, first+uint64(i))
		}
		want := s.messages[m.offset]
		if !bytes.Equal(m.payload, payload(want.number, want.size)) {
			return fmt.Sprintf("offset %d is not message %d of %d bytes but %.20q (%d bytes)", m.offset, want.number, want.size, m.payload, len(m.payload))
		}
	}
	if !maps.Equal(f.offsets, s.offsets) {
		return fmt.Sprintf("stored offsets %v, want %v", f.offsets, s.offsets)
	}
	return ""
}

// judge finds the length of the history that f shows, at least low.
func (p *part) judge(f *found, low int, trimmed uint64) (int, error) {
	why := ""
	for n := len(p.past); n >= low; n-- {
		d := p.after(n).differs(f, trimmed)
		if d == "" {
			return n, nil
		}
		if len(p.past)-n < 4 {
			why = fmt.Sprintf("as of change %d: %s; %s", n, d, why)
		}
	}
	return 0, fmt.Errorf("topic %s/%d shows none of its states %d..%d: %s", p.topic, p.number, low, len(p.past), why)
}

// reads everything of a partition.
func (r *rig) read(topic string, partition uint32, who []consumer) (*found, error) {
	f := &found{offsets: map[consumer]uint64{}}
	next := uint64(0)
	for {
		got, a := r.poll(topic, partition, consumer{wire.ConsumerSingle, 7777}, wire.Strategy{Kind: wire.StrategyOffset, Value: next}, 1000, false)
		if !a.ok() {
			return f, fmt.Errorf("poll of %s/%d at %d: %v", topic, partition, next, a)
		}
		if len(got) == 0 {
			break
		}
		f.messages = append(f.messages, got...)
		next = got[len(got)-1].offset + 1
	}
	for _, c := range who {
		if at, ok := r.offset(topic, partition, c); ok {
			f.offsets[c] = at
		}
	}
	return f, nil
}

// world is the model of a whole node during a workload.
type world struct {
	parts    map[uint64]*part // by group id
	who      map[consumer]bool
	op       uint64            // of the last acknowledged metadata op
	views    map[uint64]uint64 // op → hash of the metadata after it
	requests uint64            // number of the client's last request
	next     uint32            // message number
}

func newWorld() *world {
	return &world{parts: map[uint64]*part{}, who: map[consumer]bool{}, views: map[uint64]uint64{}}
}

func (w *world) consumers() []consumer {
	return slices.SortedFunc(maps.Keys(w.who), func(a, b consumer) int {
		return int(a.kind)<<20 + int(a.id) - int(b.kind)<<20 - int(b.id)
	})
}

// note takes a metadata op into the model.
func (w *world) note(r *rig, a *answer) {
	v := r.metadata.View()
	w.op = max(w.op, a.op)
	w.views[v.Op] = wire.Hash64(v.EncodeSnapshot(nil))
	for _, s := range v.Streams() {
		for _, t := range s.Topics() {
			for _, p := range t.AllPartitions() {
				id := t.GroupID(&p)
				m := w.parts[id]
				if m == nil {
					m = &part{topic: t.Name, number: p.ID}
					w.parts[id] = m
				}
				if m.generation != p.PurgeGeneration {
					*m = part{topic: t.Name, number: p.ID, generation: p.PurgeGeneration}
				}
			}
		}
	}
}

// check compares a recovered node with the model; lossy allows what was not synced to be lost. It
// returns how many acknowledged changes are lost.
func (w *world) check(r *rig, reference map[uint64]uint64, lossy bool) (lost int, err error) {
	v := r.metadata.View()
	if v.Op < w.op || v.Op > w.op+1 {
		return 0, fmt.Errorf("metadata is at op %d, acknowledged up to %d", v.Op, w.op)
	}
	if h := wire.Hash64(v.EncodeSnapshot(nil)); h != reference[v.Op] {
		return 0, fmt.Errorf("metadata after op %d differs from what it was", v.Op)
	}
	for _, s := range v.Streams() {
		for _, t := range s.Topics() {
			for _, p := range t.AllPartitions() {
				n, err := w.checkPart(r, t.GroupID(&p), t.Name, p.ID, p.PurgeGeneration, p.TrimTo, lossy)
				if err != nil {
					return lost, err
				}
				lost += n
			}
		}
	}
	return lost, nil
}

func (w *world) checkPart(r *rig, id uint64, topic string, number uint32, generation, trimTo uint64, lossy bool) (lost int, err error) {
	f, err := r.read(topic, number, w.consumers())
	if err != nil {
		return 0, err
	}
	p := w.parts[id]
	if p == nil || p.generation < generation {
		p = &part{topic: topic, number: number, generation: generation} // created or purged at the crash
		w.parts[id] = p
	}
	low := p.acked
	if lossy {
		low = p.synced
	}
	trimmed := uint64(0)
	if trimTo > 0 {
		trimmed = trimTo + 1
	}
	n, err := p.judge(f, low, trimmed)
	if err != nil {
		return 0, err
	}
	lost = max(0, p.acked-n)
	p.past, p.acked, p.synced = p.past[:n:n], n, n
	return lost, nil
}
