package loop

import (
	"fmt"
	"slices"

	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// keep puts a recovered prepare above the known commit point into the tail: the other members will say
// whether it is in the log of the next view.
func (r *restoring) keep(entry *journal.Entry, body []byte) error {
	h := &entry.Header
	size := int64(len(body)) + entry.At.Len // one of them is 0
	b := make([]byte, wire.HeaderSize+size)
	h.Put(b)
	if entry.At.Len > 0 {
		if err := r.group.Machine.Bodies()(entry.At, b[wire.HeaderSize:]); err != nil {
			return &Fault{r.spec.ID, h.Op, err}
		}
	} else {
		copy(b[wire.HeaderSize:], body)
	}
	r.boot.Tail = append(r.boot.Tail, *h)
	r.note(h)
	r.group.tail.push(entryOf(h, b, entry.LSN))
	return nil
}

func entryOf(h *wire.PrepareHeader, b []byte, floor journal.LSN) entry {
	return entry{header: *h, bytes: b, floor: floor}
}

// secure makes the logs of synced groups with peers durable: what their last life had only written
// counts as held from now on.
func (e *Engine) secure(ids []uint64) error {
	for _, id := range ids {
		if r := e.restoring[id]; r.group.peers != nil && r.group.synced && r.boot.Head > 0 {
			return e.journal.SyncAll()
		}
	}
	return nil
}

// rejoin ends the restart of a group with peers. Damage costs it the log behind the damage and its word:
// it is suspect until the others have made it whole again. With a machine that can not vouch for its
// state it begins anew, if the host has an empty one; otherwise it takes no part.
func (e *Engine) rejoin(r *restoring) error {
	g, p := r.group, r.group.peers
	g.Machine.Settle()
	damage := g.Machine.Ready()
	if damage != nil && e.Fresh != nil {
		if m := e.Fresh(g, damage); m != nil {
			if err := e.renew(r, m); err != nil {
				return err
			}
			r.err, damage = damage, nil
		}
	}
	boot := r.boot
	if len(boot.Tail) > 0 && boot.Tail[0].Op == boot.Commit {
		g.applied = boot.Tail[0]
	}
	// Nobody acts in a group before its first vote, so a log that begins with what was inherited proves nothing.
	records := boot.Head > 0 || r.log.Image != nil
	if n := len(boot.Tail); n > 0 && genesis(&boot.Tail[n-1]) {
		records = false
	}
	slices.Reverse(boot.Tail)
	boot.State = e.judge(&r.spec, records)
	if r.cut == 0 {
		boot.Adopted, boot.AdoptView = r.log.Adopted, r.log.AdoptView
		p.adopted, p.adoptView = r.log.Adopted, r.log.AdoptView
	}
	if r.err != nil || len(r.log.Faults) > 0 {
		if boot.State = vsr.Suspect; boot.Head == 0 {
			boot.State = vsr.Empty // its votes may be lost too
		}
		e.options.Log.Warn("the log of a group is damaged: what is missing comes from the other members", "group", g.ID, "head", boot.Head, "error", r.err)
	}
	if p.fenced = boot.State == vsr.Empty || r.err != nil || len(r.log.Faults) > 0; p.fenced {
		e.journal.Fence(g.ID) // until the group is whole, whatever the epoch of its vote
	}
	if damage != nil {
		if g.damage.image = r.log.Image; g.damage.image == nil {
			g.damage.image = &journal.Image{Group: g.ID}
		}
		g.damage.found = true
	}
	e.join(g, &r.spec, boot)
	e.Loop.markDirty(g)
	return damage
}

// renew gives a group an empty machine and nothing of its log.
func (e *Engine) renew(r *restoring, m Machine) error {
	g := r.group
	g.Machine, g.tail, r.cut = m, tail{first: 1}, 1
	r.boot = vsr.Boot{TimeFloor: r.boot.TimeFloor}
	round := journal.Round{Sync: true, Reserved: true, Records: []journal.Record{{Kind: journal.KindTruncate, Group: g.ID, Op: 1}}}
	if err := e.journal.Write(&round); err != nil {
		return fmt.Errorf("loop: %w", err)
	}
	return m.Ready()
}
