package loop

import (
	"fmt"
	"maps"
	"slices"

	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// Fault says what a group's log lost. From is the first op that is missing or unreadable.
type Fault struct {
	Group uint64
	From  uint64
	Err   error
}

func (f *Fault) Error() string {
	return fmt.Sprintf("log of group %#x: op %d: %v", f.Group, f.From, f.Err)
}

func (f *Fault) Unwrap() error { return f.Err }

// restoring is a group between Host and the end of Replay.
type restoring struct {
	group *Group
	spec  Spec
	boot  vsr.Boot
	known uint64 // commit point of a log of several members
	log   *journal.GroupLog
	cut   uint64 // first op that a power cut took the body of, 0: none
	err   error
}

// Host takes a group of the log that Replay will bring up to date. The machine already holds the
// state of log.Image.
func (e *Engine) Host(s Spec, m Machine, log *journal.GroupLog) *Group {
	g := &Group{ID: s.ID, Machine: m, synced: s.Policy.Synced, peers: e.peering(&s)}
	r := &restoring{group: g, spec: s, log: log, known: log.Commit, boot: vsr.Boot{State: vsr.Whole, TimeFloor: s.TimeFloor}}
	if log.Image != nil {
		r.boot.Head, r.boot.Commit = log.Image.Op, log.Image.Op
		r.adopt(&log.Image.Head)
	}
	g.tail.first = r.boot.Head + 1
	e.restoring[s.ID] = r
	e.Loop.groups[s.ID] = g
	return g
}

// HostLost takes a group of which the log has nothing left, although it may have held some: Replay
// reports it as failed.
func (e *Engine) HostLost(s Spec, m Machine) *Group {
	e.journal.Fence(s.ID)
	return e.Host(s, m, &journal.GroupLog{Group: s.ID, Faults: []journal.Fault{{Kind: journal.FaultUnsure, From: 1}}})
}

// adopt makes a raw prepare header the head of the log.
func (r *restoring) adopt(raw *[wire.HeaderSize]byte) {
	var h wire.PrepareHeader
	if r.boot.Head == 0 || h.Decode(raw[:]) != nil {
		return
	}
	r.head(&h)
}

func (r *restoring) head(h *wire.PrepareHeader) {
	r.boot.Tail = append(r.boot.Tail[:0], *h)
	r.note(h)
}

func (r *restoring) note(h *wire.PrepareHeader) {
	r.boot.TimeFloor = max(r.boot.TimeFloor, h.Timestamp)
	r.boot.View, r.boot.LogView = max(r.boot.View, h.View), max(r.boot.LogView, h.View)
}

// Replay streams the log through the hosted groups. A group whose log has a hole stops in front of
// it; failed is told, and the group stays hosted with what it has. A group of one has committed
// everything its log holds.
//
// A power cut may keep the record of an op and take its large body. Above the last synced position
// such an op was acknowledged to nobody, or only as written: the group's log ends in front of it.
func (e *Engine) Replay(rec *journal.Recovered, failed func(g *Group, err error)) error {
	err := e.journal.Replay(rec, func(entry *journal.Entry, body []byte) error {
		if r := e.restoring[entry.Header.Group]; r != nil && r.err == nil {
			e.replayed(rec, r, entry, body)
		}
		return nil
	})
	ids := slices.Sorted(maps.Keys(e.restoring))
	if err == nil {
		err = e.truncate(ids)
	}
	if err == nil {
		err = e.secure(ids)
	}
	if err != nil {
		return fmt.Errorf("loop: %w", err)
	}
	fenced := false
	for _, id := range ids {
		r := e.restoring[id]
		delete(e.restoring, id)
		if err := e.settle(r); err != nil {
			failed(r.group, err)
		}
		fenced = fenced || r.group.peers != nil && r.group.peers.fenced
	}
	if fenced { // what the log tells of the damage is about to be built upon
		return e.Checkpoint()
	}
	return nil
}

func (e *Engine) replayed(rec *journal.Recovered, r *restoring, entry *journal.Entry, body []byte) {
	var err error
	if r.cut == 0 {
		err = e.replay(r, entry, body)
	}
	if err != nil && e.options.Suspect && entry.At.Len > 0 && !entry.Damaged && entry.LSN >= rec.Durable {
		r.cut, err = entry.Header.Op, nil
		e.options.Log.Warn("power was cut before a large body was synced: the log of its group ends there", "group", r.spec.ID, "op", r.cut)
	}
	if r.cut != 0 && !r.group.synced {
		rec.TornOps++
	}
	r.err = err
}

// parted reports whether the log above the image does not continue it: the image came from another
// member, and the log is that of a view before.
func (r *restoring) parted(h *wire.PrepareHeader) bool {
	image := r.log.Image
	return r.group.peers != nil && image != nil && h.Op == image.Op+1 && len(r.boot.Tail) > 0 &&
		r.boot.Tail[0].Op == image.Op && r.boot.Tail[0].Checksum != h.Parent
}

// truncate makes the cuts durable before anything new is appended.
func (e *Engine) truncate(ids []uint64) error {
	round := journal.Round{Sync: true, Reserved: true}
	for _, id := range ids {
		r := e.restoring[id]
		if r.cut == 0 && r.err != nil && r.group.peers != nil {
			r.cut = r.boot.Head + 1 // what is behind the damage comes from the other members
		}
		if r.cut != 0 {
			round.Records = append(round.Records, journal.Record{Kind: journal.KindTruncate, Group: id, Op: r.cut})
		}
	}
	if len(round.Records) == 0 {
		return nil
	}
	return e.journal.Write(&round)
}

func (e *Engine) replay(r *restoring, entry *journal.Entry, body []byte) error {
	h := &entry.Header
	switch {
	case h.Op <= r.boot.Head && r.boot.Head > 0 && !entry.Damaged:
		return nil // the checkpoint covers it
	case entry.Damaged:
		return &Fault{r.spec.ID, h.Op, journal.ErrDamaged}
	case h.Op != r.boot.Head+1:
		return &Fault{r.spec.ID, r.boot.Head + 1, fmt.Errorf("missing, the log goes on at op %d", h.Op)}
	}
	if r.parted(h) {
		r.cut = h.Op
		return nil
	}
	if err := r.group.Machine.Replay(h, body, entry.At, e.options.Suspect); err != nil {
		return &Fault{r.spec.ID, h.Op, err}
	}
	r.boot.Head = h.Op
	if g := r.group; g.peers != nil && h.Op > r.known {
		return r.keep(entry, body)
	}
	r.boot.Commit = h.Op
	r.head(h)
	r.group.tail.first = h.Op + 1
	r.group.Machine.Apply(h, body, nil)
	return nil
}

// settle ends a group's restart.
func (e *Engine) settle(r *restoring) error {
	g := r.group
	if g.peers != nil {
		return e.rejoin(r)
	}
	g.tail.first = r.boot.Head + 1
	if len(r.boot.Tail) > 0 {
		g.applied = r.boot.Tail[0]
	}
	g.core = vsr.New(r.spec.group(), vsr.Limits{Pipeline: e.options.Limits.Pipeline}, r.boot)
	g.Machine.Settle()
	e.Loop.markDirty(g)
	if err := g.Machine.Ready(); err != nil {
		if r.err == nil {
			r.err = err
		}
		if g.damage.image = r.log.Image; g.damage.image == nil {
			g.damage.image = &journal.Image{Group: g.ID}
		}
	}
	if r.err == nil {
		for _, f := range r.log.Faults {
			r.err = &Fault{r.spec.ID, f.From, fmt.Errorf("%v", f.Kind)}
			break
		}
	}
	g.damage.found = r.err != nil
	return r.err
}

// Accept makes what Replay left of a damaged group the whole of it: the log goes on from there. It is
// called before Start.
func (e *Engine) Accept(g *Group) error {
	g.damage = damage{}
	e.journal.Heal(g.ID)
	return e.journal.Write(&journal.Round{Sync: true, Reserved: true, Records: []journal.Record{
		{Kind: journal.KindTruncate, Group: g.ID, Op: g.Applied() + 1},
	}})
}

// Born hosts a group that has no log yet. Its first record says so.
func (e *Engine) Born(s Spec, m Machine) *Group {
	g := &Group{ID: s.ID, Machine: m, synced: s.Policy.Synced, peers: e.peering(&s)}
	g.tail.first = 1
	boot := vsr.Boot{State: vsr.Born, TimeFloor: s.TimeFloor}
	e.Loop.groups[s.ID] = g
	if g.peers != nil {
		boot.State = e.judge(&s, false)
		e.join(g, &s, boot)
	} else {
		g.core = vsr.New(s.group(), vsr.Limits{Pipeline: e.options.Limits.Pipeline}, boot)
	}
	if boot.State == vsr.Empty {
		e.fence(g)
	} else {
		e.Loop.record(g, journal.Record{Kind: journal.KindBorn, Group: s.ID})
	}
	return g
}

// Remove ends a group: its waiting calls are refused, its log goes with the next checkpoint.
func (e *Engine) Remove(g *Group) { e.Loop.remove(g) }
