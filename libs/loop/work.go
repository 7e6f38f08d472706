package loop

import (
	"slices"

	"github.com/whippet-mq/whippet/libs/wire"
)

const refusedClosing = wire.CodeTransientNotAccepted

// markDirty notes that a group may have file work.
func (l *Loop) markDirty(g *Group) {
	if !g.dirty && g.Machine.Pending() {
		g.dirty = true
		l.dirty = append(l.dirty, g)
		l.work(g, false)
	}
}

// Tick starts file work that became due and retries groups whose tail could not be cut.
func (l *Loop) Tick() {
	keep := l.dirty[:0]
	for _, g := range l.dirty {
		if !g.gone && g.Machine.Pending() {
			l.work(g, false)
			keep = append(keep, g)
		} else {
			g.dirty = false
		}
	}
	clear(l.dirty[len(keep):])
	l.dirty = keep
	l.cool()
	if l.Ticked != nil {
		l.Ticked()
	}
	l.conclude()
}

// idleTicks is how many ticks a group keeps its buffers after its last op: a group that somebody uses does not
// make them anew for each op.
const idleTicks = 4

// heat notes that the group has buffers.
func (l *Loop) heat(g *Group) {
	if g.warm == 0 {
		l.warm = append(l.warm, g)
	}
	g.warm = idleTicks
}

// cool takes the buffers of groups that have fallen idle.
func (l *Loop) cool() {
	l.warm = slices.DeleteFunc(l.warm, func(g *Group) bool {
		if g.warm > 1 {
			g.warm--
			return false
		}
		if g.gone || g.rest() {
			g.warm = 0
			return true
		}
		return false
	})
}

func (l *Loop) work(g *Group, force bool) {
	w := g.Machine.Work(l.env.Now(), force)
	if w == nil {
		return
	}
	l.working++
	l.env.Go(w.Run, func(err error) {
		l.working--
		for g.heir != nil {
			g = g.heir // the work was on what it inherited
		}
		if g.gone {
			return
		}
		w.Done(err)
		if err == nil {
			l.work(g, false)
		} // else the next tick tries again
	})
}

func (l *Loop) idle() bool {
	if len(l.flight) > 0 || l.working > 0 || len(l.ballots) > 0 {
		return false
	}
	for _, g := range l.touched {
		if len(g.queue) > 0 {
			return false
		}
	}
	return true
}
