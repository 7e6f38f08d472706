package loop

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
