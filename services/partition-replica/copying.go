package partitionreplica

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/transfer"
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

const (
	// copyEvery is how long a copy rests between two rounds while it waits for the seal.
	copyEvery = 250 * time.Millisecond
	// copyAgain is how long it waits after a round that failed.
	copyAgain = 500 * time.Millisecond
	reportFor = 1000 // ms a report of a copy may take
	// patience is after how many rounds the pause that a move makes may be twice as long.
	patience   = 4
	reportedIn = 500 * time.Millisecond
)

// copying brings the state of a group to a node that is to be a member of its successor: a first round copies it,
// later rounds follow its tail, and one after the seal ends it.
type copying struct {
	replica *Replica
	group   uint64 // the one that is copied
	store   *copyStore
	end     context.CancelFunc
	members atomic.Pointer[[]byte]      // of the group
	heir    atomic.Pointer[inheritance] // set when there is a successor
	kick    chan struct{}
	first   int // source tried first
	size    atomic.Uint64
	done    atomic.Bool // it is over, for good or because it failed for ever
}

// inheritance is what a partition's group goes on from.
type inheritance struct {
	id      uint64 // of the successor
	members []byte
	origin  uint64 // the sealed group
	before  []byte // its members
	seal    wire.LogSeal
	settled bool // nobody needs the sealed group any more
}

// startCopy begins to copy a group, unless that is under way.
func (m *moves) startCopy(group uint64, members []byte) *copying {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.copies[group]
	if m.closed {
		return nil
	}
	if c != nil && !c.done.Load() {
		c.members.Store(&members)
		return c
	}
	r := m.replica
	ctx, end := context.WithCancel(context.Background())
	c = &copying{replica: r, group: group, store: newCopyStore(r.fs, copyDir(group)), end: end, kick: make(chan struct{}, 1)}
	c.members.Store(&members)
	m.copies[group] = c
	r.gone.Go(func() { c.run(ctx) })
	return c
}

// endCopy gives a copy up.
func (m *moves) endCopy(group uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.copies[group]; c != nil {
		c.end()
		delete(m.copies, group)
	}
}

// finish tells a copy that its group is sealed and who goes on.
func (c *copying) finish(h *inheritance) {
	if c.heir.Swap(h) == nil {
		select {
		case c.kick <- struct{}{}:
		default:
		}
	}
}

// run copies until the state is handed over or nobody wants it any more.
func (c *copying) run(ctx context.Context) {
	r := c.replica
	defer c.done.Store(true)
	defer c.store.drop()
	reports := make(chan wire.Copied, 1)
	r.gone.Go(func() { c.report(ctx, reports) })
	r.log.Info("a partition is copied from its members", "group", c.group)
	rounds := int64(0)
	for {
		started := time.Now()
		heir := c.heir.Load()
		fetched, err := c.round(ctx, heir)
		rest := copyEvery
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && heir != nil:
			if err = r.takeCopy(c, heir, fetched); err == nil {
				return
			}
			r.log.Warn("a copied partition can not be taken on yet", "group", heir.id, "error", err)
			rest = copyAgain
		case err == nil:
			took := time.Since(started)
			if err = c.store.sync(); err != nil { // the last round finds little to do
				r.log.Warn("a copy of a partition can not be made durable", "group", c.group, "error", err)
				_ = c.store.reset()
				break
			}
			rounds++
			offer(reports, wire.Copied{
				Group: c.group, Node: r.config.Node, Op: fetched.Head.Op, Took: uint32(took.Milliseconds() * patience / (patience + rounds)), Bytes: c.size.Load(), Of: c.size.Load(),
			})
		default:
			c.first++
			r.log.Info("a round of a copy failed, it is repeated", "group", c.group, "error", err)
			if rest = copyAgain; heir != nil {
				rest = copyEvery / 5
			}
			if errors.Is(err, transfer.ErrState) && !errors.Is(err, transfer.ErrBehind) { // of another purge generation, or never the same
				_ = c.store.reset()
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-c.kick:
		case <-time.After(rest):
		}
	}
}

// offer puts the newest report in front of who sends it.
func offer(reports chan wire.Copied, c wire.Copied) {
	select {
	case <-reports:
	default:
	}
	select {
	case reports <- c:
	default:
	}
}

// source is a node that may have the state, and under which id.
type source struct {
	node  uint8
	group uint64
}

// sources are the nodes to ask: the members of the group, the primary of its first view last, for it has the most to do;
// and when the group is sealed those of the successor too.
func (c *copying) sources(heir *inheritance) (list []source) {
	self := c.replica.config.Node
	members := *c.members.Load()
	if heir != nil {
		members = heir.before
	}
	for _, node := range slices.Backward(members) {
		if node != self {
			list = append(list, source{node, c.group})
		}
	}
	if heir != nil {
		for _, node := range heir.members {
			if node != self {
				list = append(list, source{node, heir.id})
			}
		}
	}
	return list
}

// round fetches what the copy lacks.
func (c *copying) round(ctx context.Context, heir *inheritance) (*transfer.Fetched, error) {
	r := c.replica
	list := c.sources(heir)
	if len(list) == 0 {
		return nil, transfer.ErrUnavailable
	}
	from := list[c.first%len(list)]
	above := uint64(0)
	if heir != nil {
		above = heir.seal.Op
	}
	want := transfer.Want{
		Node: from.node, Group: from.group, Self: vsr.NoMember, Above: above, Store: c.store, Pace: r.moves.pace.wait,
		Size: func(bytes uint64) { c.size.Store(bytes) },
	}
	// The last round is short, and somebody waits for it: it goes ahead of those that do not.
	if heir == nil {
		select {
		case r.moves.room <- struct{}{}:
			defer func() { <-r.moves.room }()
		case <-c.kick:
			return nil, transfer.ErrUnavailable
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	before := c.store.bytes.Load()
	defer func() { r.moves.copied.Add(float64(max(c.store.bytes.Load(), before) - before)) }()
	return r.transfers.Copy(ctx, want)
}

// report tells the primary of the group, and the metadata primary, how far the copy is.
func (c *copying) report(ctx context.Context, reports <-chan wire.Copied) {
	last := wire.Copied{Group: c.group, Node: c.replica.config.Node}
	tick := time.NewTicker(reportedIn)
	defer tick.Stop()
	for !c.done.Load() {
		select {
		case <-ctx.Done():
			return
		case last = <-reports:
		case <-tick.C:
			if last.Op == 0 {
				last.Bytes, last.Of = c.store.bytes.Load(), c.size.Load()
			}
		}
		for _, group := range []uint64{c.group, wire.MetadataGroup} {
			q := link.NewCall()
			q.Group, q.Internal, q.Deadline, q.Body = group, link.InternalCopied, reportFor, last.Append(nil)
			q.Header.Operation = wire.OpNonReplicated
			c.replica.config.Ask(q)
		}
	}
}

// takes reports whether a fetched state is one to go on from.
func (h *inheritance) takes(head *wire.PrepareHeader, cluster wire.U128) (last wire.PrepareHeader, ok bool) {
	if head.Group == h.id {
		return *head, head.Op >= h.seal.Op // of the successor itself
	}
	return vsr.Genesis(cluster, h.id, h.seal), vsr.Succeeds(head, h.seal)
}

// takeCopy makes a copied state this node's member of the successor. It returns when the member is hosted, or is
// not to be.
func (r *Replica) takeCopy(c *copying, h *inheritance, fetched *transfer.Fetched) error {
	last, ok := h.takes(&fetched.Head, r.config.Cluster)
	if !ok {
		return errCopy
	}
	next := r.newPartition(r.Engine(h.id), h.id)
	if err := r.fs.RemoveAll(next.dir); err != nil { // of an attempt that failed
		return err
	}
	if err := r.fs.MkdirAll(next.dir); err != nil {
		return err
	}
	m, err := decodeImage(fetched.State)
	if err == nil {
		err = c.store.keep(&m.segments)
	}
	if err == nil {
		err = next.unpack(fetched.State, c.store.dir)
	}
	if err != nil {
		_ = r.fs.RemoveAll(next.dir)
		return err
	}
	r.metrics.transfers.Inc()
	next.heirs = nil
	next.sealed.Store(false)
	taken := false
	next.engine.Wait(func() { taken = r.inherit(next, last, nil) })
	if !taken {
		_ = next.log.Close()
		_ = r.fs.RemoveAll(next.dir)
	}
	return nil
}
