package loop

import "github.com/whippet-mq/whippet/libs/vsr"

// timers is a heap of the groups that asked to be woken, the earliest first. A group that is not in it
// costs nothing.
type timers []*Group

// schedule sets, moves or clears the group's wake-up.
func (l *Loop) schedule(g *Group, at vsr.Tick) {
	p := g.peers
	if p.bound != 0 && (at == 0 || p.bound < at) {
		at = p.bound
	}
	switch {
	case at == 0 && p.slot == 0:
	case at == 0:
		l.timers.remove(p.slot - 1)
	case p.slot == 0:
		p.wake = at
		l.timers = append(l.timers, g)
		p.slot = len(l.timers)
		l.timers.up(p.slot - 1)
	case at != p.wake:
		p.wake = at
		l.timers.down(l.timers.up(p.slot - 1))
	}
}

// NextWake is when the loop wants its next turn; ok is false when no group asked.
func (l *Loop) NextWake() (at vsr.Tick, ok bool) {
	if len(l.timers) == 0 {
		return 0, false
	}
	return l.timers[0].peers.wake, true
}

func (l *Loop) due() bool { return len(l.timers) > 0 && l.timers[0].peers.wake <= l.env.Tick() }

// maxWoken bounds the groups a turn wakes: what ten thousand of them ask after a restart is answered, and the
// answers are taken, before the next ones ask.
const maxWoken = 256

// wakeUp steps groups whose time has come, each once. The others are left to the next turn.
func (l *Loop) wakeUp() {
	l.late = false
	if !l.due() {
		return
	}
	now := l.env.Tick()
	for len(l.timers) > 0 && l.timers[0].peers.wake <= now {
		if l.late = len(l.woken) == maxWoken; l.late {
			break
		}
		g := l.timers[0]
		l.timers.remove(0)
		l.inform(g)
		l.woken = append(l.woken, g)
	}
	for i, g := range l.woken {
		l.woken[i] = nil
		if !g.gone {
			l.releaseVote(g)
			l.tell(g, vsr.Input{Kind: vsr.InputTick})
		}
	}
	l.woken = l.woken[:0]
}

func (t timers) swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].peers.slot, t[j].peers.slot = i+1, j+1
}

func (t timers) before(i, j int) bool {
	a, b := t[i], t[j]
	return a.peers.wake < b.peers.wake || a.peers.wake == b.peers.wake && a.ID < b.ID
}

func (t timers) up(i int) int {
	for i > 0 && t.before(i, (i-1)/2) {
		t.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
	return i
}

func (t timers) down(i int) {
	for {
		least := i
		for _, child := range [...]int{2*i + 1, 2*i + 2} {
			if child < len(t) && t.before(child, least) {
				least = child
			}
		}
		if least == i {
			return
		}
		t.swap(i, least)
		i = least
	}
}

func (t *timers) remove(i int) {
	old := *t
	last := len(old) - 1
	old.swap(i, last)
	old[last].peers.slot = 0
	old[last] = nil
	if *t = old[:last]; i < last {
		t.down(t.up(i))
	}
}
