package loop

// whole saves the vote of a group whose log is whole again (rule D9): what it has is synced first, large
// bodies too, then the vote carries the suspect epoch in force.
func (l *Loop) whole(g *Group) {
	l.env.Go(l.env.SyncAll, func(err error) {
		p := g.peers
		if err != nil || g.gone || !p.vote.Whole {
			return // a failed sync ends the process; a later vote says otherwise
		}
		p.epoch = l.epoch
		if p.fenced {
			p.fenced = false
			l.env.Heal(g.ID)
		}
		l.vote(g)
	})
}
