package loop

// fence makes it durable that a member has lost what it had, before any vote of it could make it look
// whole to its next life.
func (e *Engine) fence(g *Group) {
	g.peers.fenced, g.peers.guarded = true, true
	e.journal.Fence(g.ID)
	e.Do(func() {
		e.insist(func() {
			if g.peers.guarded = false; g.peers.asked && !g.gone {
				e.Loop.vote(g)
			}
		})
	})
}

// whole saves the vote of a group whose log is whole again (rule D9): what it has is made durable first,
// then the vote carries the suspect epoch in force. A checkpoint that fails leaves the group suspect for
// the next life.
func (l *Loop) whole(g *Group) {
	p := g.peers
	l.env.MakeWhole(g.ID, p.fenced, func(err error) {
		if g.gone || !p.vote.Whole {
			return
		}
		if err == nil {
			p.epoch, p.fenced = l.epoch, false
		}
		l.vote(g)
	})
}
