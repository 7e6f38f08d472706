package simulator

import "github.com/whippet-mq/whippet/libs/wire"

// pingFrame is the group of frames between nodes.
const pingFrame = -1

// link carries frames from one node to one other, in order unless a fault says otherwise.
type link struct {
	epoch uint64 // a reset makes what is on its way part of the past
	last  uint64 // arrival of the newest frame
	cuts  int    // reasons to carry nothing
	past  past   // what it carried lately
}

// past are the last frames of a link, of which copies may still be under way somewhere.
type past struct {
	frames [32]lateFrame
	next   int
}

type lateFrame struct {
	group   int
	deliver func()
}

// network is all links and the faults that strike single frames.
type network struct {
	w     *World
	links [][]link
	delay *stream
	fault *stream
	calm  bool // frame faults have ended
}

func newNetwork(w *World) *network {
	n := &network{w: w, links: make([][]link, w.config.Nodes), delay: newStream(w.config.Seed, "delay"), fault: newStream(w.config.Seed, "frame faults")}
	for i := range n.links {
		n.links[i] = make([]link, w.config.Nodes)
	}
	return n
}

func (n *network) strikes(f Fault) bool {
	hit := n.fault.chance(n.w.config.Rates[f]) && !n.calm
	if hit {
		n.w.count(f.String())
	}
	return hit
}

// send takes a frame at its sender. group is the group index at the receiver, unless the frame is misrouted.
func (n *network) send(from, to int, frame []byte, group int) {
	if n.strikes(Loss) || n.links[from][to].cuts > 0 {
		return
	}
	if n.strikes(Corrupt) {
		frame = n.corrupted(frame)
	}
	if n.strikes(Misroute) && group != pingFrame {
		group = (group + 1) % len(n.w.config.Groups)
	}
	receiver := n.w.nodes[to]
	life := receiver.life
	if !receiver.up() { // not connected
		return
	}
	deliver := func() {
		if receiver.life == life { // what was on its way to an earlier process died with its connection
			receiver.receive(from, frame, group)
		}
	}
	n.carry(from, to, deliver)
	if n.w.config.Rates[Replay] > 0 && group != pingFrame {
		p := &n.links[from][to].past
		p.frames[p.next%len(p.frames)] = lateFrame{group, deliver}
		p.next++
	}
	if n.strikes(Duplicate) {
		n.carry(from, to, deliver)
	}
	if n.strikes(Replay) {
		n.w.after(n.fault.between(100*millisecond, 3*second), deliver)
	}
}

// carry runs deliver when the frame would arrive, if the link lives that long.
func (n *network) carry(from, to int, deliver func()) {
	l := &n.links[from][to]
	mean := n.w.config.Delay
	arrival := n.w.now + mean/5 + n.delay.about(mean)
	if n.strikes(Reorder) {
		arrival += n.delay.between(0, 20*mean)
	} else {
		arrival = max(arrival, l.last+1)
		l.last = arrival
	}
	epoch := l.epoch
	n.w.at(arrival, func() {
		if l := &n.links[from][to]; l.epoch == epoch && l.cuts == 0 {
			deliver()
		}
	})
}

// corrupted flips one bit. The size field is spared, for a stream with a wrong size ends the connection;
// so is the view of a prepare, which no checksum of the wire covers.
func (n *network) corrupted(frame []byte) []byte {
	b := append([]byte(nil), frame...)
	for {
		at := n.fault.index(len(b))
		prepare := b[60] == byte(wire.CommandPrepare) || b[60] == byte(wire.CommandRepairPrepare)
		if at >= 48 && at < 52 || prepare && at >= 52 && at < 56 {
			continue
		}
		b[at] ^= 1 << n.fault.below(8)
		return b
	}
}

// haunt has copies of frames of earlier views reach a member that begins to lead another one: the worst moment.
func (n *network) haunt(to, group int) {
	if n.w.config.Rates[Replay] == 0 || n.calm || !n.fault.chance(0.3) {
		return
	}
	for from := range n.links {
		l := &n.links[from][to]
		for i := range l.past.frames {
			if late := l.past.frames[i]; late.deliver != nil && late.group == group && n.fault.chance(0.5) {
				n.w.count("late frame for a new primary")
				n.w.after(n.fault.below(3*n.w.config.Delay), late.deliver)
			}
		}
	}
}

// reset loses what is on its way from one node to another.
func (n *network) reset(from, to int) {
	n.links[from][to].epoch++
	n.reconnect(from, to)
}

// reconnect tells both ends of a new connection: what was sent before may be lost.
func (n *network) reconnect(from, to int) {
	if from == to {
		return
	}
	n.w.after(n.delay.between(millisecond, 50*millisecond), func() {
		a, b := n.w.nodes[from], n.w.nodes[to]
		a.tell(func() { a.heart.connected(to) })
		b.tell(func() { b.heart.connected(from) })
	})
}

// cut stops a link for a while.
func (n *network) cut(from, to int, duration uint64) {
	l := &n.links[from][to]
	l.cuts++
	n.w.after(duration, func() {
		if l.cuts == 0 {
			return // healed before its time
		}
		if l.cuts--; l.cuts == 0 {
			n.reconnect(from, to)
		}
	})
}

// part cuts all links that lead out of a side; with one way only, links into it still work.
func (n *network) part(side uint32, oneWay bool, duration uint64) {
	for i := range n.links {
		for j := range n.links {
			inside, outside := side>>i&1 == 1, side>>j&1 == 0
			if inside && outside {
				n.cut(i, j, duration)
				if !oneWay {
					n.cut(j, i, duration)
				}
			}
		}
	}
}

// open reports whether two nodes can talk.
func (n *network) open(a, b int) bool { return n.links[a][b].cuts == 0 && n.links[b][a].cuts == 0 }

// heal ends every cut and every frame fault.
func (n *network) heal() {
	n.calm = true
	for i := range n.links {
		for j := range n.links[i] {
			n.links[i][j].cuts = 0
			n.reconnect(i, j)
		}
	}
}
