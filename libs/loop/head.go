package loop

import (
	"slices"

	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// Head is the highest op of the group's log, committed or not. Called in a turn.
func (g *Group) Head() uint64 { return g.core.Head().Op }

// Uncommitted is how many ops of the group's log are not applied here. Called in a turn.
func (g *Group) Uncommitted() uint64 { return g.core.Head().Op - min(g.Applied(), g.core.Head().Op) }

// Waiting is how many calls wait for room in the pipeline. Called in a turn.
func (g *Group) Waiting() int { return len(g.queue) }

// Knows reports whether this member knows what is committed: it has applied all it was told of, and so many
// members answer it that none of them can have committed without one it hears. A group of one always does. Any
// goroutine.
func (g *Group) Knows(now vsr.Tick, e *Echoes) bool {
	return g.peers == nil || g.peers.status.Load()&statusCurrent != 0 && e.reached(g.peers, now)
}

// Logged visits the prepares of the log that are not applied yet, committed or not, in op order; nothing visited
// may be kept. Called in a turn, or before Start.
func (g *Group) Logged(visit func(h *wire.PrepareHeader, body []byte)) {
	for op := g.tail.first; op < g.tail.next(); op++ {
		e := g.tail.at(op)
		visit(&e.header, e.body())
	}
}

// Synced reports whether ops of the group are acknowledged when they are synced, not when they are written.
func (g *Group) Synced() bool { return g.synced }

// Last is the header of the highest applied op, with op 0 while there is none. Called in a turn.
func (g *Group) Last() wire.PrepareHeader { return g.applied }

// Settled reports whether this member takes part in its group with all it ever acknowledged. Called in a
// turn.
func (g *Group) Settled() bool { return !g.unborn && (g.peers == nil || g.core.Settled()) }

// Lost reports whether this member of a group of several came up without log and votes and has not got
// them back. Called in a turn.
func (g *Group) Lost() bool { return !g.unborn && g.peers != nil && g.core.Lost() }

// Current reports whether this member takes part in its group and has applied all it was told is
// committed. Called in a turn.
func (g *Group) Current() bool { return !g.unborn && (g.peers == nil || g.core.Current()) }

// takesPart reports whether the group is neither behind nor lost.
func (g *Group) takesPart() bool { return g.Current() && !g.core.Lost() }

// missed puts a group of several members where Behind finds it, until it is seen there to take part.
func (l *Loop) missed(g *Group) {
	if !g.peers.behind {
		g.peers.behind = true
		l.behind = append(l.behind, g)
	}
}

// Behind calls visit for the groups that are not Current, or Lost. It costs as much as there are of them: those
// that take part are not looked at. Called in a turn.
func (l *Loop) Behind(visit func(*Group)) {
	l.behind = slices.DeleteFunc(l.behind, func(g *Group) bool {
		if g.gone || g.takesPart() {
			g.peers.behind = false
			return true
		}
		visit(g)
		return false
	})
}
