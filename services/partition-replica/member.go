package partitionreplica

import (
	"errors"

	"github.com/whippet-mq/whippet/libs/control"
	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/segment"
	"github.com/whippet-mq/whippet/libs/wire"
)

var errForeignBatch = errors.New("partition: batch is not stamped for the next offset of this log")

// Follow implements loop.Machine: what another primary stamped has to continue this log exactly, or the
// two have parted before.
func (p *Partition) Follow(h *wire.PrepareHeader, body []byte) (loop.Staged, error) {
	if h.Operation != wire.OpSendMessages {
		p.noteOwn(h, body)
		return loop.Staged{}, nil
	}
	if p.resetting != 0 {
		return loop.Staged{}, loop.ErrWait // it is stamped for the log behind the purge
	}
	var b wire.BatchHeader
	if err := b.Decode(body); err != nil {
		return loop.Staged{}, err
	}
	base := p.log.Next()
	if b.BaseOffset != base || b.BaseTimestamp != h.Timestamp || b.Partition != uint64(p.number) || b.Length != uint64(len(body)) {
		return loop.Staged{}, errForeignBatch
	}
	return p.place(h, body, base), nil
}

// noteOwn remembers what a staged op that is no send is going to change, and whose it is.
func (p *Partition) noteOwn(h *wire.PrepareHeader, body []byte) {
	switch h.Operation {
	case wire.OpStoreOffset, wire.OpDeleteOffset:
		if h.Client != autoCommitClient {
			p.recent.add(h.Client, recentWrite{sequence: h.Request, op: h.Op}, h.Timestamp)
		}
	case wire.OpPurgeTopic:
		if purge, err := wire.DecodePartitionPurge(body); err == nil && purge.Generation > p.log.Generation() {
			p.resetting, p.purged = h.Op, max(p.purged, purge.Generation)
		}
	case wire.OpTruncatePartition:
		if trim, err := wire.DecodePartitionTrim(body); err == nil {
			p.trimTo = max(p.trimTo, trim.UpToOffset+1)
		}
	}
}

// Bodies implements loop.Machine.
func (p *Partition) Bodies() func(journal.Location, []byte) error {
	read := p.log.Bodies()
	return func(at journal.Location, dst []byte) error { return read(segment.Location(at), dst) }
}

// Role implements loop.Machine. Who leads takes up what the metadata asks for; who does not leads
// forgets what it promised to pollers, for the next primary has not promised it.
func (p *Partition) Role(primary bool, view uint32) {
	p.count(primary, view)
	if !primary {
		p.offsets.resign()
		p.owing.Store(false)
	} else if p.group != nil {
		p.engine.Do(func() {
			p.followMetadata()
			p.dropDeletedGroups(p.replica.follower.View())
		})
	}
}

// count keeps the figures of who leads what.
func (p *Partition) count(leads bool, view uint32) {
	m := p.replica.metrics
	if leads != p.leading {
		p.leading = leads
		if leads {
			m.led.Inc()
			p.say(control.Event{Kind: control.Leads, View: view})
		} else {
			m.led.Dec()
			p.say(control.Event{Kind: control.Follows, View: view})
		}
	}
	if p.group != nil && view > p.view { // not the role it comes up with
		m.viewChanges.Inc()
	}
	p.view = view
}

// serves reports whether this process may answer reads of a partition, nil when it does not host it.
// Otherwise it has refused the call, with word of who may. In a cluster nothing is said of a partition
// before its group was asked: others may have it under a later primary. Neither does a primary answer that is
// below what the caller has shown before (design-arguments.md 14): it is deposed and has not heard of it.
func (r *Replica) serves(p *Partition, c *link.Call) bool {
	if p == nil && r.absent(c.Group) == link.ReasonViewChange {
		c.Refuse(wire.CodeTransientNotAccepted, link.ReasonViewChange)
		return false
	}
	if p == nil {
		if id := c.Group; r.shared(id) {
			e := r.Engine(id)
			e.Do(func() { r.hostFor(e, id) })
			c.Refuse(wire.CodeTransientNotAccepted, link.ReasonBusy)
			return false
		}
		return true
	}
	view := p.group.View() // before: a view that begins meanwhile is not the one that serves
	ok, why := p.group.Serves(p.engine.Tick(), r.config.Engine.Echoes)
	switch {
	case !ok:
		c.View, c.Primary = p.group.View(), p.group.LeaderIndex()
	case p.sealed.Load(): // its successor has what comes behind
		ok, why = false, link.ReasonViewChange
	case p.group.Nodes() != nil && view < c.Floor.View: // a later primary has answered
		ok, why = false, link.ReasonNotPrimary
		c.View, c.Primary = view, wire.NoPrimary
	case p.group.Nodes() != nil && (wire.Floor{View: view, Next: p.log.View().Next()}).Below(c.Floor):
		ok, why = false, link.ReasonBehind // a purge that the caller will hear of took what it has shown
		c.View, c.MetadataOp = view, r.follower.View().Op
	default:
		c.View = view
	}
	if !ok {
		c.Refuse(wire.CodeTransientNotAccepted, why)
	}
	return ok
}

// absent says why a group is not here although it may belong here: its state is on its way, or nobody knows of it.
func (r *Replica) absent(id uint64) link.Reason {
	if _, part, ok := r.follower.View().PartitionByGroupID(id); ok && part.Origin != nil {
		return link.ReasonViewChange
	}
	return link.ReasonUnknownGroup
}

// shared reports whether a group the metadata knows has members besides this process.
func (r *Replica) shared(id uint64) bool {
	_, part, ok := r.follower.View().PartitionByGroupID(id)
	return ok && (len(r.config.Roster) > 1 || part.Placed() && len(part.Members()) > 1)
}

// renew replaces a partition that can not be read by an empty one, which the other members fill. The
// damaged files go to the trash.
func (r *Replica) renew(g *loop.Group, damage error) loop.Machine {
	p := r.find(g.ID)
	next := r.newPartition(p.engine, p.id)
	for home := p.home + 1; ; home++ {
		next.settleIn(home)
		if _, err := r.fs.Stat(next.dir); err != nil {
			break
		}
	}
	log, _, err := segment.Open(r.fs, next.dir, r.options(next), segment.State{})
	if err != nil {
		return nil
	}
	r.log.Error("partition is damaged: it is fetched from the other members", "stream", p.stream, "topic", p.topic,
		"partition", p.number, "error", damage)
	p.damaged(damage)
	next.log = log
	_ = p.log.Close()
	r.adopt(next, g)
	return next
}
