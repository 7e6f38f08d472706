package loop

import "github.com/whippet-mq/whippet/libs/vsr"

// Head is the highest op of the group's log, committed or not. Called in a turn.
func (g *Group) Head() uint64 { return g.core.Head().Op }

// Hears reports whether so many members answer this one that none of them can have committed without one
// it hears. A group of one always does. Any goroutine.
func (g *Group) Hears(now vsr.Tick, e *Echoes) bool {
	return g.peers == nil || e.reached(g.peers, now)
}
