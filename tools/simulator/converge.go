package simulator

import (
	"fmt"
	"slices"
)

// How long a healed cluster may take, in µs of virtual time.
const (
	leaderLimit  = 4 * second  // until every group has a primary
	settleLimit  = 15 * second // until everybody has everything
	afterwards   = 3 * second  // of rest, in which nothing may happen
	healthyViews = 12          // views that pass in a healed cluster at most
)

// converge heals the cluster and waits until it is at rest, which it must be in bounded time (L1, L3).
func (w *World) converge() {
	w.calm = true
	w.network.heal()
	w.giveUp()
	for _, n := range w.nodes {
		n.disk.slowUntil, n.disk.fullUntil, n.disk.failWrite, n.disk.failSync = 0, 0, false, false
		if n.condition == paused {
			n.resume()
		}
		n.boot()
	}
	healed, views := w.now, w.views()
	if w.trace.loud() {
		w.trace.say("healed")
	}
	if !w.runUntil(healed+leaderLimit, w.led) {
		w.fail("L1", "%s", w.describe("no primary in %d s:", leaderLimit/second, func(h *history) bool { return h.primary() == nil }))
	}
	w.leaderTime = w.now - healed
	w.runUntil(w.now+second, nil)
	for _, c := range w.clients {
		c.stopped = true
	}
	if !w.runUntil(healed+settleLimit, w.settled) {
		w.fail("L3", "%s", w.describe("not at rest after %d s:", settleLimit/second, func(h *history) bool { return !h.settled() }))
	}
	w.settleTime = w.now - healed
	for i, before := range views {
		if after := w.views()[i]; after > before+healthyViews && !w.succeeded(i) {
			w.fail("L8", "group %x went from view %d to %d in a healed cluster", w.config.Groups[i].ID, before, after)
		}
	}
	w.rest()
}

// giveUp leaves one node dead for ever in every second run whose groups can do without it: all of them
// have others enough, and no disk lost anything.
func (w *World) giveUp() {
	s, rates := newStream(w.config.Seed, "give up"), &w.config.Rates
	n := w.nodes[s.index(len(w.nodes))]
	if w.config.Profile != Liveness || !w.everyGroupHas(3) || rates[SyncError]+rates[Damage]+rates[Wipe] > 0 || s.chance(0.5) {
		return
	}
	for _, other := range w.nodes {
		for group := range w.config.Groups {
			if other != n && (other.gone[group] || other.hosts(group) && !other.disk.vouched(group)) && w.memberOf(group, other.id) >= 0 {
				return // it is gone already, or needs an answer first
			}
		}
	}
	w.count("node left dead")
	n.end(killed)
	n.retired = true
}

// rest checks that a settled cluster asks for nothing: no timers, no frames, no lost wake-up (H3).
func (w *World) rest() {
	w.runUntil(w.now+3500*millisecond, nil) // background syncs end, the last replayed frame arrives
	steps, frames := w.steps, w.frames
	w.runUntil(w.now+afterwards, nil)
	if !w.settled() {
		w.fail("H3", "%s", w.describe("a settled cluster moved%s:", "", func(h *history) bool { return !h.settled() }))
	}
	if w.steps != steps || w.frames != frames {
		w.fail("H3", "a settled cluster took %d steps and sent %d frames in %d s", w.steps-steps, w.frames-frames, afterwards/second)
	}
}

func (w *World) views() []uint32 {
	views := make([]uint32, len(w.history))
	for i, h := range w.history {
		for _, m := range h.members() {
			views[i] = max(views[i], m.core.View())
		}
	}
	return views
}

func (w *World) led() bool {
	for _, h := range w.history {
		if h.living() && !w.succeeded(h.group) && h.primary() == nil {
			return false
		}
	}
	return true
}

func (w *World) settled() bool {
	for _, c := range w.clients {
		if c.request != nil {
			return false
		}
	}
	for i := range w.slots {
		r := &w.slots[i]
		if r.target != nil || r.origin != nil && !r.origin.settled || slices.ContainsFunc(w.nodes, func(n *node) bool { return n.owes(r) }) {
			return false
		}
	}
	for _, h := range w.history {
		if !h.settled() {
			return false
		}
	}
	return true
}

// members are those that run.
func (h *history) members() []*member {
	var list []*member
	for _, node := range h.spec.Members {
		if n := h.w.nodes[node]; n.condition == running && n.members[h.group] != nil && !n.gone[h.group] {
			list = append(list, n.members[h.group])
		}
	}
	return list
}

// living reports whether enough members run for the group to serve.
func (h *history) living() bool { return len(h.members()) >= h.spec.quorums().ViewChange }

// primary is the acting one of the newest view, nil when there is none.
func (h *history) primary() *member {
	for _, m := range h.members() {
		if m.core.Primary() && m.mayServe(false) {
			return m
		}
	}
	return nil
}

// settled reports whether all members have the same log, applied, and wait for nothing.
func (h *history) settled() bool {
	if !h.living() || h.w.succeeded(h.group) {
		return true
	}
	p := h.primary()
	if p == nil {
		return false
	}
	for _, m := range h.members() {
		if m.log.head() != p.log.head() || m.core.Commit() != m.log.head() || m.state.op != m.log.head() || m.core.View() != p.core.View() ||
			m.wakeAt != 0 || len(m.bodies) != 0 || len(m.waiting) != 0 || len(m.pipeline) != 0 || m.inDoubt() || m.held() != m.log.head() {
			return false
		}
	}
	return true
}

// describe says how the groups stand that are not as they should be.
func (w *World) describe(title string, number any, wrong func(*history) bool) string {
	text := fmt.Sprintf(title, number)
	for _, h := range w.history {
		if !h.living() || !wrong(h) {
			continue
		}
		text += fmt.Sprintf(" group %x (policy synced %v)", h.spec.ID, h.spec.Policy.Synced)
		for _, m := range h.members() {
			text += fmt.Sprintf(" [node %d member %d view %d/%d log %d..%d commit %d applied %d held %d wake %d bodies %d waiting %d primary %v doubt %v]",
				m.n.id, m.self, m.core.View(), m.core.LogView(), m.log.base.Op, m.log.head(), m.core.Commit(), m.state.op, m.held(), m.wakeAt,
				len(m.bodies), len(m.waiting)+len(m.pipeline), m.core.Primary(), m.inDoubt())
		}
	}
	for i, c := range w.clients {
		if c.request != nil {
			text += fmt.Sprintf(" client %d waits for group %d since %.0f ms", i, c.request.group, float64(w.now-c.request.started)/millisecond)
		}
	}
	return text
}
