package simulator

import (
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// Client patience, in µs.
const (
	answerLimit  = 1500 * millisecond // without an answer the next node is asked
	requestLimit = 30 * second        // after that the outcome stays unknown
)

// door is a front-door: what the clients of one were shown of each group, nobody of them sees gone again.
type door struct {
	floors []wire.Floor // by group: what a server is told
	shown  []uint64     // by group: the op itself
}

// show notes an answer before the client has it.
func (d *door) show(group int, a *answer) {
	d.shown[group] = max(d.shown[group], a.op)
	if f := (wire.Floor{View: a.view, Next: a.op}); d.floors[group].Below(f) {
		d.floors[group] = f
	}
}

// client issues one request at a time and repeats it until it is answered, as the SDKs do.
type client struct {
	w       *World
	id      wire.U128
	random  *stream
	target  []int // by group: member that is asked first
	door    *door
	number  uint64
	request *request
	stopped bool
}

// request is one write or read; repeats of it are the same request.
type request struct {
	client  *client
	slot    int   // partition that is asked, or the metadata
	group   int   // of it, as last looked up
	target  []int // of a seal: who goes on
	read    bool
	number  uint64
	value   uint64
	body    []byte
	started uint64
	floor   uint64     // ops acknowledged when it started
	shown   uint64     // op that its door had shown when this attempt began,
	below   wire.Floor // how the door says so, and
	losses  int        // how often the group had lost ops by then
	attempt uint64
	op      uint64 // where this process put it
	lost    bool
	done    bool
	probe   bool // of a member that led before, beside what the client does
}

// answer is a reply: an op, or a refusal.
type answer struct {
	op      uint64
	view    uint32
	refused bool
}

func (c *client) next() {
	if c.stopped {
		return
	}
	c.number++
	c.w.values++
	r := &request{
		client: c, slot: c.random.index(len(c.w.slots)), read: c.random.chance(c.w.config.Reads),
		number: c.number, value: c.w.values, started: c.w.now,
	}
	r.group = c.w.slots[r.slot].group
	r.body, r.floor = newBody(r.value), c.w.history[r.group].acknowledgedTo
	c.request = r
	c.try(r)
}

// try asks the node believed to lead.
func (c *client) try(r *request) {
	if r.done {
		return
	}
	if c.w.now-r.started > requestLimit {
		c.w.count("request given up")
		c.finish(r)
		return
	}
	r.attempt++
	attempt := r.attempt
	r.group = c.w.slots[r.slot].group
	r.shown, r.below, r.losses = c.door.shown[r.group], c.door.floors[r.group], c.w.history[r.group].losses
	spec := &c.w.config.Groups[r.group]
	target := c.target[r.group]
	if r.read && c.random.chance(0.3) { // whoever believes to lead
		target = c.random.index(len(spec.Members))
	}
	n := c.w.nodes[spec.Members[target%len(spec.Members)]]
	c.w.after(c.random.between(50, 2*millisecond), func() {
		if !n.up() || n.members[r.group] == nil {
			c.answered(r, answer{refused: true})
			return
		}
		group := r.group
		n.tell(func() {
			if m := n.members[group]; m != nil {
				m.request(r)
			}
		})
	})
	c.w.after(answerLimit, func() {
		if !r.done && r.attempt == attempt {
			c.target[r.group]++
			c.try(r)
		}
	})
}

// probes is how often somebody asks who led before, once another one has answered.
const probes = 40

// probe reads from the member that led a view, again and again: it may not have heard that it leads no more.
func (c *client) probe(group, view, times int) {
	c.w.after(c.random.between(millisecond, 40*millisecond), func() {
		spec := &c.w.config.Groups[group]
		n := c.w.nodes[spec.Members[view%len(spec.Members)]]
		if times == 0 || c.w.calm {
			return
		}
		r := &request{
			client: c, group: group, read: true, probe: true, floor: c.w.history[group].acknowledgedTo,
			shown: c.door.shown[group], below: c.door.floors[group], losses: c.w.history[group].losses,
		}
		if n.up() && n.members[group] != nil {
			n.tell(func() { n.members[group].request(r) })
		}
		c.probe(group, view, times-1)
	})
}

// answer travels back to the client.
func (r *request) answer(a answer) {
	c := r.client
	if c == nil { // a seal: the register says how it ended
		return
	}
	c.w.after(c.random.between(50, 2*millisecond), func() { c.answered(r, a) })
}

func (c *client) answered(r *request, a answer) {
	switch {
	case r.probe && a.refused:
	case r.probe:
		c.w.count("answered by a former primary")
		c.door.show(r.group, &a)
	case r.done:
	case !a.refused:
		c.w.count("answered")
		if before := c.door.floors[r.group].View; a.view > before {
			c.probe(r.group, int(before), probes)
		}
		c.door.show(r.group, &a)
		c.w.answered++
		c.finish(r)
	default:
		if members := len(c.w.config.Groups[r.group].Members); a.view != 0 && c.random.chance(0.7) {
			c.target[r.group] = int(a.view) % members
		} else {
			c.target[r.group]++
		}
		attempt := r.attempt
		c.w.after(c.random.between(5*millisecond, 50*millisecond), func() {
			if r.attempt == attempt {
				c.try(r)
			}
		})
	}
}

func (c *client) finish(r *request) {
	r.done = true
	c.request = nil
	c.w.after(c.random.about(c.w.config.Think), c.next)
}

// request is what a server does with a routed request.
func (m *member) request(r *request) {
	switch {
	case r.done:
		return
	case m.core.Closed() && r.read:
		r.answer(answer{refused: true})
		return
	case m.core.Closed():
		m.propose(r) // the core refuses by itself
		return
	case !m.mayServe(r.read):
		if !r.read && !m.core.Primary() && m.n.random.chance(0.1) { // the core refuses by itself
			m.propose(r)
		} else {
			r.answer(answer{refused: true, view: m.core.View()})
		}
		return
	case r.read && !m.history.solo() && (wire.Floor{View: m.core.View(), Next: m.state.op}).Below(r.below):
		m.w.count("below what was shown")
		r.answer(answer{refused: true})
		return
	case r.read:
		m.history.read(m, r)
		r.answer(answer{op: m.state.op, view: m.core.View()})
		return
	}
	if m.spec.metadata() {
		if r.number <= m.state.table[r.client.id] {
			m.w.count("answered from the client table")
			r.answer(answer{op: m.state.op, view: m.core.View()})
			return
		}
		if m.state.op < m.core.Commit() {
			r.answer(answer{refused: true, view: m.core.View()})
			return
		}
	}
	m.propose(r)
}

// propose gives a request to the core, which answers it at once with an op or a refusal.
func (m *member) propose(r *request) {
	operation := wire.OpSendMessages
	if m.spec.metadata() {
		operation = wire.OpCreateStream
	}
	m.proposeAs(r, operation)
}

func (m *member) proposeAs(r *request, operation wire.Operation) {
	client := wire.U128{}
	if r.client != nil {
		client = r.client.id
	}
	token := m.give(r.body)
	m.waiting[token] = r
	m.step(vsr.Input{Kind: vsr.InputRequest, Body: token, BodyHash: wire.Hash64(r.body), Request: vsr.Request{
		Operation: operation, Client: client, Request: r.number, Size: wire.HeaderSize + bodySize,
	}})
	if m.waiting[token] != nil {
		m.w.fail("L2", "node %d group %d: a request got neither an op nor a refusal", m.n.id, m.group)
	}
}

// refused answers a request that got no op, or lost it.
func (m *member) refused(f *vsr.Refusal) {
	m.w.count("refused: " + f.Why.String())
	var r *request
	if f.Op == 0 {
		r = m.waiting[f.Body]
		delete(m.waiting, f.Body)
		m.take(f.Body, "refused")
	} else {
		r = m.pipeline[f.Op]
		delete(m.pipeline, f.Op)
	}
	if r != nil {
		r.answer(answer{refused: true, view: m.core.View()})
	}
}
