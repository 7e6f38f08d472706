package partitionreplica

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// How a partition moves, as the metadata says it (design-arguments.md 2): nodes that are only in the target copy the
// group's state as non-members; when they are close behind, its primary seals the group and tells the metadata, which
// names the successor; members of the successor that have exactly what the seal ends begin it, others fetch that first;
// what is left of the sealed group goes when a quorum of the successor has begun. Every step is found again from the
// metadata and from what is on disk, whoever crashed.

const (
	// movesEvery is how often moves under way are looked at.
	movesEvery = 100 * time.Millisecond
	// caughtUpIn is how long a member that lags behind the seal tries to catch up in its own group.
	caughtUpIn = 3 * time.Second
	// copyFresh and copyClose say when a copy is good enough to seal, in µs and ms: who copies was heard lately, and
	// its last round, which the round after the seal will be like, was short.
	copyFresh = 3_000_000
	copyClose = 1000
	// succeedFor is how long, in ms, the metadata primary may take to name a successor.
	succeedFor = 1000
	// begunEvery is how often the members of a successor are asked whether they have begun.
	begunEvery = 500 * time.Millisecond
	begunFor   = 500 // ms
)

// slot names a partition through all its incarnations.
type slot struct{ stream, topic, partition uint32 }

func (a slot) compare(b slot) int {
	return cmp.Or(cmp.Compare(a.stream, b.stream), cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
}

// moves is this node's part in the moves of partitions.
type moves struct {
	replica *Replica
	pace    *pacer
	room    chan struct{} // copies at once

	mu      sync.Mutex
	pending map[slot]*moving // looked at until nothing is left to do
	copies  map[uint64]*copying
	closed  bool
	wake    chan struct{}

	copied, moved prometheus.Counter
}

// moving is what is remembered of a partition between two looks. Owned by the goroutine that looks.
type moving struct {
	behind time.Time // since when the member here lags behind the seal
	asked  time.Time // when the successor's members were asked last
}

func newMoves(r *Replica, reg prometheus.Registerer) *moves {
	m := &moves{
		replica: r, pace: newPacer(r.config.MoveRate), room: make(chan struct{}, max(1, r.config.MovesAtOnce)),
		pending: map[slot]*moving{}, copies: map[uint64]*copying{}, wake: make(chan struct{}, 1),
		copied: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "whippet_move_copied_bytes_total", Help: "Bytes this process copied of partitions that move to it.",
		}),
		moved: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "whippet_moves_total", Help: "Partitions that went on in a new group with this process as a member.",
		}),
	}
	reg.MustRegister(m.copied, m.moved)
	return m
}

// note has a partition looked at.
func (m *moves) note(s slot) {
	m.mu.Lock()
	if m.pending[s] == nil {
		m.pending[s] = &moving{}
	}
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// noteTopic has the partitions of a topic looked at that move or have moved, if that concerns this node.
func (m *moves) noteTopic(t *metadata.Topic) {
	if t == nil {
		return
	}
	for _, part := range t.AllPartitions() {
		if part.Moving() || part.Origin != nil {
			m.note(slot{t.Stream, t.ID, part.ID})
		}
	}
}

// watch looks at the moves under way until the replica closes.
func (m *moves) watch() {
	tick := time.NewTicker(movesEvery)
	defer tick.Stop()
	for {
		select {
		case <-m.replica.stop:
			return
		case <-m.wake:
		case <-tick.C:
		}
		m.look()
	}
}

// look takes every pending partition a step further.
func (m *moves) look() {
	m.mu.Lock()
	pending := maps.Clone(m.pending)
	m.mu.Unlock()
	v := m.replica.follower.View()
	for _, s := range slices.SortedFunc(maps.Keys(pending), slot.compare) {
		if m.replica.advanceMove(v, s, pending[s]) {
			m.mu.Lock()
			delete(m.pending, s)
			m.mu.Unlock()
		}
	}
}

// close gives up what is being copied.
func (m *moves) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for _, c := range m.copies {
		c.end()
	}
}

// advanceMove does what this node has to for a partition that moves or has moved. True: nothing is left to do.
func (r *Replica) advanceMove(v *metadata.View, s slot, state *moving) (settled bool) {
	t := v.TopicByKey(metadata.TopicKey{Stream: s.stream, Topic: s.topic})
	var part metadata.Partition
	ok := t != nil
	if ok {
		part, ok = t.Partition(s.partition)
	}
	if !ok {
		r.moves.endCopies(s, 0)
		return true // it was deleted: Follow sees to what is hosted
	}
	id := t.GroupID(&part)
	settled = true
	if origin, ok := t.OriginID(&part); ok {
		r.moves.endCopies(s, origin, id)
		h := &inheritance{settled: part.Origin.Settled, id: id, members: part.Members(), origin: origin, before: part.Origin.Members(), seal: part.Origin.Seal}
		settled = r.takeOver(h, state)
	} else {
		r.moves.endCopies(s, id)
	}
	_, inside := part.MemberIndex(r.config.Node)
	if wanted := slices.Contains(part.Target(), r.config.Node) && !inside; wanted {
		r.moves.startCopy(id, part.Members())
		settled = false
	} else {
		r.moves.endCopy(id)
	}
	p := r.find(id)
	switch {
	case !inside || !part.Moving() && (p == nil || !p.sealed.Load()):
		return settled
	case p == nil: // nobody has used it yet
		e := r.Engine(id)
		e.Do(func() { r.hostFor(e, id) })
		return false
	}
	p.engine.Wait(func() { p.steer(part.Target(), part.Members()) })
	return false
}

// endCopies gives up what is copied of a partition's groups, except of those that are still of use.
func (m *moves) endCopies(s slot, except ...uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for group, c := range m.copies {
		stream, topic, partition, _ := wire.SplitGroupID(group)
		if (slot{stream, topic, partition}) == s && !slices.Contains(except, group) {
			c.end()
			delete(m.copies, group)
		}
	}
}

// steer takes a move further at a member of the group: it seals the group when enough nodes can go on from there, and
// tells who decides when that is done. Called in a turn.
func (p *Partition) steer(target, members []byte) {
	if seal, ok := p.group.Sealed(); ok {
		if len(p.heirs) > 0 && p.leads() && !p.reporting.Swap(true) {
			m := wire.Move{Kind: wire.MoveSucceed, Group: p.id, Members: p.heirs, Seal: seal}
			p.engine.Sync(func(err error) { // a power cut must not take what a successor is to go on from
				if err != nil {
					p.reporting.Store(false)
					return
				}
				go p.report(m)
			})
		}
		return
	}
	if len(target) == 0 || !p.leads() || p.closed() != nil || !p.ready(target, members) {
		return
	}
	p.proposeAutoCommits() // promises do not pass to the successor
	if p.own(wire.OpSealPartition, wire.PartitionSeal{Members: target}.Append(make([]byte, wire.HeaderSize))) {
		p.replica.log.Info("a partition is sealed: its successor goes on elsewhere", "stream", p.stream, "topic", p.topic,
			"partition", p.number, "group", p.id, "members", target)
	}
}

// ready reports whether the successor can begin soon after the seal: every node that has to copy is close behind, and
// a quorum of the target is there.
func (p *Partition) ready(target, members []byte) bool {
	r, there := p.replica, 0
	for _, node := range target {
		switch c, reported := p.copies[node]; {
		case node == r.config.Node:
			there++
		case slices.Contains(members, node) || p.group.Applied() == 0: // there is nothing to copy yet but the seal
			if r.config.Engine.Echoes == nil || r.config.Engine.Echoes.Answers(node, p.engine.Tick()) {
				there++
			}
		case !reported || c.report.Op == 0 || c.report.Took > copyClose || p.engine.Now() > c.at+copyFresh:
			return false
		default:
			there++
		}
	}
	q := vsr.QuorumsOf(len(target))
	return there >= max(q.Replication, q.ViewChange)
}

// copyReport is what a node said of its copy, and when.
type copyReport struct {
	report wire.Copied
	at     uint64
}

// noteCopied takes a report of a node that copies a partition. Called in a turn.
func (r *Replica) noteCopied(e *loop.Engine, c *link.Call) {
	q, err := wire.DecodeCopied(c.Body)
	p := r.find(c.Group)
	if err != nil || p == nil || p.engine != e || q.Group != p.id {
		return
	}
	if !p.leads() {
		c.Status, c.Reason, c.View = wire.CodeTransientNotAccepted, link.ReasonNotPrimary, p.group.View()
		return
	}
	if p.copies == nil {
		p.copies = map[uint8]copyReport{}
	}
	p.copies[q.Node] = copyReport{q, e.Now()}
}

// applySeal ends the group: nothing follows in its log, and nobody is answered from it any more.
func (p *Partition) applySeal(body []byte) {
	s, err := wire.DecodePartitionSeal(body)
	if err != nil {
		return // no primary proposes one
	}
	p.heirs, p.copies = slices.Clone(s.Members), nil
	p.sealed.Store(true)
	p.replica.moves.note(slot{p.stream, p.topic, p.number})
}

// report tells the metadata that a move is a step further. It is repeated until the metadata here knows it.
func (p *Partition) report(m wire.Move) {
	defer p.reporting.Store(false)
	q := link.NewCall()
	q.Group, q.Internal, q.Deadline, q.Body = wire.MetadataGroup, link.InternalSucceed, succeedFor, m.Append(nil)
	q.Header.Operation = wire.OpNonReplicated
	p.replica.config.Ask(q)
	if q.Status == 0 { // it is there: the feed brings it
		p.replica.reach(q.Op, time.Second)
	}
}

// takeOver brings this node from the sealed group of a partition to its successor. True: it is there, or has nothing
// to do with either.
func (r *Replica) takeOver(h *inheritance, state *moving) (settled bool) {
	p, old := r.find(h.id), r.find(h.origin)
	member := slices.Contains(h.members, r.config.Node)
	switch {
	case member && p == nil:
		if old != nil && r.convert(old, h) {
			return false
		}
		if state.behind.IsZero() {
			state.behind = time.Now()
		}
		if old == nil || time.Since(state.behind) > caughtUpIn {
			if c := r.moves.startCopy(h.origin, h.before); c != nil {
				c.finish(h)
			}
		}
		return false
	case old != nil:
		if h.settled {
			r.log.Info("a partition has moved: its former files here go", "group", h.origin, "members", h.members)
			old.engine.Do(func() { r.remove(old) })
		}
		return false
	case h.settled || !member:
		r.moves.endCopy(h.origin)
		return true
	}
	leads := false
	p.engine.Wait(func() { leads = p.group.Begun() && p.leads() })
	if leads && r.replaced(h, state) && !p.reporting.Swap(true) {
		go p.report(wire.Move{Kind: wire.MoveSettle, Group: p.id})
	}
	return false
}

// convert makes a member of the sealed group a member of its successor with all it has, if its log ends in the seal: then
// nothing is missing, whatever the member knows of itself.
func (r *Replica) convert(old *Partition, h *inheritance) (done bool) {
	if r.Engine(h.id) != old.engine || old.home>>homeBits == wire.MaxTag {
		return false // it is taken in as a copy
	}
	old.engine.Wait(func() {
		last := old.group.Last()
		if r.find(h.origin) != old || old.fence.Load() != nil || !vsr.Succeeds(&last, h.seal) {
			return
		}
		next := r.newPartition(old.engine, h.id)
		next.log, next.offsets, next.recent = old.log, old.offsets, old.recent
		next.livesIn(old)
		done = r.inherit(next, vsr.Genesis(r.config.Cluster, h.id, h.seal), old)
	})
	return done
}

// inherit hosts a member of a successor. False: it is not to be any more. Called in a turn.
func (r *Replica) inherit(next *Partition, last wire.PrepareHeader, old *Partition) bool {
	_, part, ok := r.follower.View().PartitionByGroupID(next.id)
	if !ok || r.find(next.id) != nil {
		return false
	}
	if _, member := part.MemberIndex(r.config.Node); !member {
		return false
	}
	next.purged = next.log.Generation()
	spec := r.spec(next.id)
	spec.TimeFloor = part.CreatedAt
	var ended *loop.Group
	if old != nil {
		ended = old.group
		old.count(false, old.view)
		r.held.set(old, false)
		r.owing.set(old, false)
		r.mu.Lock()
		delete(r.partitions, old.id)
		r.mu.Unlock()
	}
	r.adopt(next, next.engine.Inherit(spec, next, last, ended))
	r.moves.moved.Inc()
	r.log.Info("a partition goes on in a new group", "stream", next.stream, "topic", next.topic, "partition", next.number,
		"group", next.id, "members", part.Members(), "op", last.Op, "end", next.log.Next())
	return true
}

// replaced asks the members of a successor whether they have begun: what the sealed group left may go when enough of
// them have.
func (r *Replica) replaced(h *inheritance, state *moving) bool {
	if time.Since(state.asked) < begunEvery {
		return false
	}
	state.asked = time.Now()
	begun := uint32(0)
	for i, node := range h.members {
		if node == r.config.Node {
			begun |= 1 << i
			continue
		}
		service := r.config.Dial(node)
		if service == nil {
			continue
		}
		c := link.NewCall()
		c.Internal, c.Group, c.Deadline = link.InternalBegun, h.id, begunFor
		c.Header.Operation = wire.OpNonReplicated
		service.Serve(c)
		<-c.Done()
		if c.Status == 0 && len(c.Out) == 1 && c.Out[0] == 1 {
			begun |= 1 << i
		}
	}
	return vsr.Replaced(begun, len(h.members))
}

// answerBegun says whether the member here of the asked group has begun.
func (r *Replica) answerBegun(e *loop.Engine, c *link.Call) {
	if p := r.find(c.Group); p != nil && p.engine == e && p.group.Begun() {
		c.Out = append(c.Out, 1)
	}
}

// sealedPartitions has what a restart found sealed looked at.
func (r *Replica) sealedPartitions() {
	for _, e := range r.engines {
		for _, p := range r.of(e) {
			if p.sealed.Load() {
				r.moves.note(slot{p.stream, p.topic, p.number})
			}
		}
	}
}
