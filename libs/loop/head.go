package loop

// Head is the highest op of the group's log, committed or not. Called in a turn.
func (g *Group) Head() uint64 { return g.core.Head().Op }
