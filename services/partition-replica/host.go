package partitionreplica

import (
	"errors"
	"fmt"
	"slices"

	"github.com/whippet-mq/whippet/libs/control"
	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/segment"
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// openEngines opens one engine per loop directory; a new data directory gets config.Loops. The
// number never changes afterwards: a group's records stay in the log of its loop.
func (r *Replica) openEngines(deps Deps) error {
	n := 0
	for {
		if _, err := r.fs.Stat(loopDir(n)); err != nil {
			break
		}
		n++
	}
	if n == 0 {
		n = max(1, r.config.Loops)
	}
	lostOps, cut := 0, int64(0)
	for i := range n {
		options := r.config.Engine
		options.FS, options.Dir, options.Log, options.Fatal = deps.FS, loopDir(i), deps.Log, deps.Fatal
		options.Metrics = r.metrics.loops
		options.Owner.Loop += uint32(i)
		e, recovered, err := loop.OpenEngine(options)
		if err != nil {
			return fmt.Errorf("partition replica: loop %d: %w", i, err)
		}
		e.Fresh = r.renew
		e.Loop.LostOps = r.gaveUp
		e.Loop.Missing = func(c *link.Call) (*loop.Group, link.Reason) { return r.hostFor(e, c.Group), r.absent(c.Group) }
		e.Loop.MissingPeer = func(group uint64) *loop.Group { return r.hostFor(e, group) }
		r.engines = append(r.engines, e)
		old := ancestors(recovered.Groups)
		for g := range recovered.Groups {
			if !old[recovered.Groups[g].Group] {
				r.recover(e, &recovered.Groups[g])
			}
		}
		if recovered.Unsure {
			r.hostLost(e, i, n)
		}
		err = e.Replay(recovered, func(g *loop.Group, err error) {
			p := r.find(g.ID)
			r.fencePartition(p, asDamage(p, err))
		})
		if err != nil {
			return fmt.Errorf("partition replica: loop %d: %w", i, err)
		}
		for g := range recovered.Groups {
			if log := &recovered.Groups[g]; old[log.Group] && !log.Gone {
				if err := e.Forget(log.Group); err != nil {
					return fmt.Errorf("partition replica: loop %d: %w", i, err)
				}
			}
		}
		lostOps, cut = lostOps+recovered.TornOps, cut+recovered.Torn
	}
	r.noteLoss(lostOps, cut)
	return nil
}

// noteLoss says that a power cut may have taken what was acknowledged but not synced. From topics
// that acknowledge what is synced it takes nothing. A tail that is lost as a whole leaves no trace, so
// the log can not tell how much it was.
func (r *Replica) noteLoss(ops int, bytes int64) {
	if !r.config.Engine.Suspect || !r.hasUnsynced() {
		return
	}
	r.metrics.lossStarts.Inc()
	r.metrics.lossOps.Add(float64(ops))
	r.events.Say(control.Event{Kind: control.LossAccepted, Reason: fmt.Sprintf("%d operations are known to be lost", ops)})
	r.log.Warn("power was cut: acknowledged messages of the last second before it may be lost, except in topics that acknowledge what is synced",
		"known_lost_ops", ops, "bytes_cut", bytes)
}

// gaveUp counts what the members of a group agreed to go on without: a power cut took it from all of them.
func (r *Replica) gaveUp(g *loop.Group, ops uint64) {
	r.metrics.lossOps.Add(float64(ops))
	stream, topic, partition, _ := wire.SplitGroupID(g.ID)
	r.log.Error("acknowledged messages are lost: no member of the partition has them any more", "stream", stream, "topic", topic,
		"partition", partition, "known_lost_ops", ops)
}

// hasUnsynced reports whether any topic acknowledges what is written.
func (r *Replica) hasUnsynced() bool {
	for _, s := range r.view().Streams() {
		for _, t := range s.Topics() {
			if !t.Settings.Persisted && !t.Settings.OffsetsPersist {
				return true
			}
		}
	}
	return false
}

func loopDir(i int) string { return fmt.Sprintf("loops/%d", i) }

// recover brings one partition back from the log. Damage fences that partition alone.
func (r *Replica) recover(e *loop.Engine, g *journal.GroupLog) {
	if g.Gone {
		return
	}
	p := r.newPartition(e, g.Group)
	var state []byte
	if g.Image != nil {
		state = g.Image.State
	}
	m, err := decodeImage(state)
	if err == nil {
		p.offsets, p.recent = m.offsets, m.recent
		p.settleIn(m.home)
		p.heirs = m.heirs
		p.sealed.Store(len(m.heirs) > 0)
		p.log, _, err = segment.Open(r.fs, p.dir, r.options(p), m.segments)
	}
	if err != nil {
		r.log.Error("partition can not be read and is fenced", "group", g.Group, "error", err)
		p.log, _, _ = segment.Open(r.fs, p.dir+".fenced", r.options(p), segment.State{})
		p.fence.Store(&segment.Damage{Path: p.dir, Reason: "checkpoint image", Err: err})
		p.damaged(err)
	}
	if r.unknown(g.Group) {
		r.log.Warn("partition is in the log and not in the metadata: it is fenced", "group", g.Group)
		p.fence.Store(&segment.Damage{Path: p.dir, Reason: "metadata", Err: errUnknown})
	}
	r.adopt(p, e.Host(r.spec(g.Group), p, g))
}

var errUnknown = errors.New("partition: nothing is known of its members")

// unknown reports whether nobody can say which members a group has: where the metadata places partitions, one
// that is missing there must not be taken for a group of one.
func (r *Replica) unknown(id uint64) bool {
	v := r.view()
	_, _, ok := v.PartitionByGroupID(id)
	return !ok && r.config.Engine.Peers != nil && len(r.config.Roster) <= 1 && !v.DeletedGroup(id)
}

// hostLost fences the partitions of a loop that the metadata knows and a log with lost records does
// not: they may have had messages, and a new life would give their offsets away again.
func (r *Replica) hostLost(e *loop.Engine, number, loops int) {
	for _, s := range r.view().Streams() {
		for _, t := range s.Topics() {
			for _, part := range t.AllPartitions() {
				id := t.GroupID(&part)
				if LoopOf(id, loops) != number || r.find(id) != nil || !r.hosts(r.view(), id) {
					continue
				}
				p := r.newPartition(e, id)
				p.log, _, _ = segment.Open(r.fs, p.dir+".fenced", r.options(p), segment.State{})
				r.adopt(p, e.HostLost(r.spec(id), p))
			}
		}
	}
}

// spec describes a group: its members, and what its topic asks for.
func (r *Replica) spec(id uint64) loop.Spec {
	s := loop.Spec{ID: id, Cluster: r.config.Cluster, Members: 1, Policy: vsr.Policy{Synced: r.persisted(id)}}
	nodes := r.config.Roster
	if _, part, ok := r.view().PartitionByGroupID(id); ok && part.Placed() {
		nodes = part.Members()
	} else if _, part, ok := r.view().Successor(id); ok {
		nodes = part.Origin.Members()
	}
	if len(nodes) > 1 {
		s.Members, s.Nodes, s.Self = uint8(len(nodes)), nodes, uint8(slices.Index(nodes, r.config.Node))
	}
	return s
}

func asDamage(p *Partition, err error) *segment.Damage {
	var d *segment.Damage
	if errors.As(err, &d) {
		return d
	}
	return &segment.Damage{Path: p.dir, Reason: "log", Err: err}
}

func (r *Replica) newPartition(e *loop.Engine, id uint64) *Partition {
	p := &Partition{replica: r, engine: e, id: id, offsets: &offsets{}}
	p.stream, p.topic, p.number, _ = wire.SplitGroupID(id)
	p.settleIn(0)
	p.propose = p.proposeAutoCommits
	return p
}

// homeDir is a directory of a partition: the first one, or that of a state that was installed. The low 20 bits of home
// count those; the next 11 say how many incarnations ago the directory was made, by a group whose files its successors
// go on with.
func homeDir(id uint64, home uint32) string {
	stream, topic, partition, tag := wire.SplitGroupID(id)
	id = wire.GroupID(stream, topic, partition, (tag-uint16(home>>homeBits))&wire.MaxTag)
	home &= 1<<homeBits - 1
	if home == 0 {
		return fmt.Sprintf("%s/%016x", groupsDir, id)
	}
	return fmt.Sprintf("%s/%016x.%d", groupsDir, id, home)
}

const homeBits = 20

// ancestors are the groups whose files other recovered groups go on with. Their own logs count no more.
func ancestors(groups []journal.GroupLog) map[uint64]bool {
	all := map[uint64]bool{}
	for i := range groups {
		g := &groups[i]
		if g.Gone || g.Image == nil {
			continue
		}
		m, err := decodeImage(g.Image.State)
		if err != nil {
			continue
		}
		stream, topic, partition, tag := wire.SplitGroupID(g.Group)
		for back := range uint16(m.home >> homeBits) {
			all[wire.GroupID(stream, topic, partition, (tag-1-back)&wire.MaxTag)] = true
		}
	}
	return all
}

func (r *Replica) options(p *Partition) segment.Options {
	o := segment.Options{Files: r.files, Trash: trashDir}
	if t := r.view().TopicByKey(metadata.TopicKey{Stream: p.stream, Topic: p.topic}); t != nil {
		o.SegmentSize = int64(t.Settings.SegmentSize)
	}
	return o
}

// persisted reports whether the group's topic asks for synced acknowledgements, of messages or of
// consumer offsets: one policy rules the whole log of a partition, the stricter one.
func (r *Replica) persisted(id uint64) bool {
	t, _, ok := r.view().PartitionByGroupID(id)
	if !ok {
		t, _, ok = r.view().Successor(id)
	}
	return ok && (t.Settings.Persisted || t.Settings.OffsetsPersist)
}

// hostFor starts a partition that the metadata knows and nobody hosts yet. Called in a turn.
func (r *Replica) hostFor(e *loop.Engine, id uint64) *loop.Group {
	if p := r.find(id); p != nil {
		return p.group
	}
	t, part, ok := r.follower.View().PartitionByGroupID(id)
	if !ok || part.Placed() && !slices.Contains(part.Members(), r.config.Node) {
		return nil
	}
	if part.Origin != nil { // it goes on from a state, or not at all
		r.moves.note(slot{t.Stream, t.ID, part.ID})
		return nil
	}
	lost := false
	if r.config.Joined != nil {
		joined, known := r.config.Joined()
		if lost = part.CreatedRevision <= joined; !known {
			return nil
		}
	}
	p := r.newPartition(e, id)
	log, _, err := segment.Open(r.fs, p.dir, r.options(p), segment.State{})
	if err != nil {
		r.log.Error("partition can not be created", "group", id, "error", err)
		return nil
	}
	p.log = log
	spec := r.spec(id)
	spec.TimeFloor, spec.Lost = part.CreatedAt, lost
	r.adopt(p, e.Born(spec, p))
	p.followMetadata()
	return p.group
}

func (r *Replica) adopt(p *Partition, g *loop.Group) {
	p.group = g
	r.mu.Lock()
	r.partitions[p.id] = p
	n := len(r.partitions)
	r.mu.Unlock()
	r.metrics.partitions.Set(float64(n))
}

// fencePartition takes a damaged partition out of service, one with other members only from offering its state.
// Its files stay as they are. True: it was not fenced before.
func (r *Replica) fencePartition(p *Partition, d *segment.Damage) bool {
	if !p.fence.CompareAndSwap(nil, d) {
		return false
	}
	r.metrics.fenced.Inc()
	p.damaged(d)
	r.log.Error("partition is damaged and fenced: alone it refuses sends, other members lead it; files are kept", "stream", p.stream,
		"topic", p.topic, "partition", p.number, "file", d.Path, "position", d.Pos, "reason", d.Error())
	return true
}

// fileFailed notes a failed background write; the bytes stay in memory and journal. After a failed
// sync nothing this process wrote may be trusted.
func (r *Replica) fileFailed(p *Partition, err error) {
	switch {
	case err == nil:
	case errors.Is(err, segment.ErrSyncFailed) && r.fatal != nil:
		r.fatal(3, err)
	default:
		r.metrics.fileErrors.Inc()
		r.log.Warn("segment write failed, it will be repeated", "group", p.id, "error", err)
	}
}

func sortByID(all []*Partition) {
	slices.SortFunc(all, func(a, b *Partition) int {
		if a.id < b.id {
			return -1
		}
		return 1
	})
}
