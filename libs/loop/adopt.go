package loop

import (
	"slices"

	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// adoption is a Truncate and Adopt on their way to stable storage.
type adoption struct {
	truncate uint64 // first op to remove from the journal, 0 = none
	wanted   bool   // the core waits for it, and has the journal take the headers
	headers  []wire.PrepareHeader
	view     uint32
}

// note is a record of a round that is not an entry.
type note struct {
	group    *Group
	adoption *adoption
}

// adopt makes it durable that the group takes on the log of a view. Whatever the policy, this waits for
// a sync: the member will vote with that view's number.
func (l *Loop) adopt(g *Group, o *vsr.Output) {
	p := g.peers
	a := &adoption{wanted: len(o.Adopt) > 0 || o.AdoptView != 0, headers: slices.Clone(o.Adopt), view: o.AdoptView}
	if o.Truncate > g.Applied() && o.Truncate <= p.logged {
		a.truncate = o.Truncate
	}
	if a.wanted {
		p.adopting = a
	} else if a.truncate == 0 {
		return
	}
	l.writeAdoption(g, a)
}

func (l *Loop) writeAdoption(g *Group, a *adoption) {
	b := l.building(true)
	g.peers.forced = l.seq + 1 // what the group appends this turn stays behind it
	if stale := g.peers.stale; stale != 0 && (a.truncate == 0 || stale < a.truncate) {
		a.truncate = stale
	}
	g.peers.stale = 0
	if a.truncate != 0 {
		b.round.Records = append(b.round.Records, journal.Record{Kind: journal.KindTruncate, Group: g.ID, Op: a.truncate})
		g.peers.logged = min(g.peers.logged, a.truncate-1)
	}
	if a.wanted {
		b.round.Records = append(b.round.Records, journal.AdoptRecord(g.ID, a.view, a.headers))
	}
	b.notes = append(b.notes, note{g, a})
}

// noted takes the completion of a note.
func (l *Loop) noted(n note, err error) {
	g, a := n.group, n.adoption
	p := g.peers
	switch {
	case g.gone:
	case err != nil:
		l.failAdoption(g, a)
	default:
		if a.wanted {
			p.adopted, p.adoptView = a.headers, a.view
		}
		if p.adopting == a {
			p.adopting = nil
			l.tell(g, vsr.Input{Kind: vsr.InputAdopted})
		}
	}
}

// failAdoption keeps what the journal did not take, for when it does again.
func (l *Loop) failAdoption(g *Group, a *adoption) {
	p := g.peers
	if a.truncate != 0 && (p.owed == 0 || a.truncate < p.owed) {
		p.owed = a.truncate
	}
	if !p.failed {
		p.failed = true
		l.owing = append(l.owing, g)
	}
}

// repay writes again what a failed round held of adoptions: nothing behind it is in the journal.
func (l *Loop) repay() {
	owing := l.owing
	l.owing = nil
	for _, g := range owing {
		p := g.peers
		p.failed = false
		if g.gone {
			continue
		}
		a := p.adopting
		if a == nil {
			a = &adoption{}
		}
		a.truncate, p.owed = p.owed, 0
		l.writeAdoption(g, a)
	}
}
