package partitionreplica

import (
	"fmt"
	"slices"

	"github.com/whippet-mq/whippet/libs/segment"
	"github.com/whippet-mq/whippet/libs/transfer"
)

// damaged takes what a read of a hosted partition met. True: it was not known before. A copy among others leads no
// more: the next primary has what can not be read here, and from others it is mended (lookAfterDamage).
func (r *Replica) damaged(p *Partition, d *segment.Damage) bool {
	known := !r.fencePartition(p, d)
	if known || p.group.Nodes() == nil {
		return !known
	}
	p.engine.Do(func() { p.engine.Loop.StandDown(p.group) })
	return true
}

// lookAfterDamage begins to mend what is damaged and not being mended, and has its lead taken by others once: a
// member that stands down in the first half second of the others is not followed by anybody.
func (r *Replica) lookAfterDamage() {
	for _, e := range r.engines {
		for _, p := range r.of(e) {
			if d := p.fence.Load(); d != nil && p.group.Nodes() != nil {
				r.lookAfter(p, d)
			}
		}
	}
}

func (r *Replica) lookAfter(p *Partition, d *segment.Damage) {
	mendable, node := false, uint8(0)
	p.engine.Wait(func() {
		switch {
		case p.leading && !p.deposed:
			p.engine.Loop.StandDown(p.group)
		case !p.leading:
			p.deposed = true
		}
		if d.Path != segment.Path(p.dir, p.log.Generation(), d.Segment) {
			if p.home > 0 && p.group.Settled() { // of files that are its own no more
				r.whole(p, d)
			}
			return
		}
		mendable, node = true, p.donor()
	})
	if mendable && r.transfers != nil && p.mending.CompareAndSwap(false, true) {
		r.mend(p, d, node)
	}
}

// donor is the member asked next for what is damaged here: the primary, then the others in turn. Called in a turn.
func (p *Partition) donor() uint8 {
	nodes := p.group.Nodes()
	for {
		node := nodes[(int(p.group.LeaderIndex())+p.asked)%len(nodes)]
		p.asked++
		if node != p.replica.config.Node {
			return node
		}
	}
}

// mend fetches a damaged segment from another member and puts its bytes where they differ. The member takes part in
// its group meanwhile, with the log it has; only what is damaged it offers to nobody.
func (r *Replica) mend(p *Partition, d *segment.Damage, node uint8) {
	store := &stage{fs: r.fs, dir: p.dir + ".mend"}
	want := transfer.Want{
		Node: node, Group: p.id, Self: uint8(slices.Index(p.group.Nodes(), r.config.Node)), Store: store,
		Files: func(base uint64) bool { return base == d.Segment },
	}
	r.transfers.Fetch(want, func(_ *transfer.Fetched, err error) error {
		defer p.mending.Store(false)
		if err == nil {
			err = r.restore(p, d, store)
		}
		if removing := r.fs.RemoveAll(store.dir); err == nil {
			err = removing
		}
		if err != nil {
			r.metrics.transfersFailed.Inc()
			r.log.Warn("damage could not be mended, it is tried again", "group", p.id, "node", node, "file", d.Path, "error", err)
		}
		return err
	})
}

// restore mends from what was fetched.
func (r *Replica) restore(p *Partition, d *segment.Damage, store *stage) error {
	var plan *segment.Repair
	if p.engine.Wait(func() {
		if r.find(p.id) != p {
			return // it was replaced or deleted meanwhile
		}
		if plan = p.log.RepairPlan(d.Segment); plan == nil {
			r.whole(p, d) // it was trimmed meanwhile
		}
	}); plan == nil {
		return nil
	}
	f, err := r.fs.Open(store.path() + "/" + segment.FileName(d.Segment))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // read only
	size, err := f.Size()
	if err != nil {
		return err
	}
	good, err := plan.Run(f, size)
	switch {
	case err != nil:
		return err
	case good <= d.Pos:
		return fmt.Errorf("partition: the other member has %d bytes of it, the damage is at %d", good, d.Pos)
	}
	r.metrics.mended.Inc()
	r.log.Info("damage is mended", "group", p.id, "file", d.Path)
	p.engine.Do(func() { r.whole(p, d) })
	return nil
}

// whole ends the fence that damage raised. Called in a turn.
func (r *Replica) whole(p *Partition, d *segment.Damage) {
	if p.fence.CompareAndSwap(d, nil) {
		p.deposed, p.asked = false, 0
	}
}
