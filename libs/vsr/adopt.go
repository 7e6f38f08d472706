package vsr

import "github.com/whippet-mq/whippet/libs/wire"

// plan is the log of a view that this member is taking on: a backup from a StartView, a primary-elect
// from its merge. The steps, each waiting for the durability of the one before (pursue):
//
//	find   which of the own entries are in that log; the others go
//	store  truncation, and the headers of what is missing
//	hold   everything left in the log
//	vote   log view = view
//
// Only then entries are appended and acknowledged. A crash at any point leaves a log that is honest for
// the log view it votes with: every op of that view's log can be named, and none of it was denied.
type plan struct {
	active  bool
	view    uint32
	head    uint64
	commit  uint64
	headers []wire.PrepareHeader // newest first; Head, Head-1, …
	fresh   bool                 // the log has everything this member ever acknowledged (rule D9)
	newer   bool                 // the own log is that of an older view

	found  bool
	match  uint64 // own entries up to here are in the log of the view
	search uint64 // op whose entry proves the one below it
	stored bool
}

// low is the lowest op the plan names.
func (p *plan) low() uint64 { return p.head + 1 - uint64(len(p.headers)) }

// adopt starts taking on the log of a view. The caller has left the view before.
func (r *Replica) adopt(p plan, out *Output) {
	p.active, p.newer = true, p.view > r.logView
	r.plan = p
	r.pursue(out)
}

// pursue goes on with the plan as far as durability allows.
func (r *Replica) pursue(out *Output) {
	p := &r.plan
	if !p.active || r.halted {
		return
	}
	if !p.found && !r.find(out) {
		return
	}
	p.match = min(p.match, r.tail.head)
	if !r.store(out) || r.storing || r.held < r.tail.head {
		return
	}
	r.switchLog()
	if r.save(out); r.settled() {
		r.adopted(out)
	}
}

// switchLog makes the log that of the plan's view. From here on a vote may speak of it.
func (r *Replica) switchLog() {
	p := &r.plan
	if p.newer || len(r.names) == 0 || r.names[0].Op <= p.head { // an old StartView does not take names away
		r.names = nil
		for i := range p.headers {
			if p.headers[i].Op > r.held {
				r.names = p.headers[:i+1]
			}
		}
	}
	r.logView = p.view
	if p.newer {
		r.known = min(r.known, p.head) // more than that was given up (rule D8)
	}
	r.known = max(r.known, p.commit, r.committed)
}

// find sets match: the chain proves everything below an entry that is in the view's log. Where the
// own log ends below the named part, the entry above its head is fetched to see what it follows.
func (r *Replica) find(out *Output) bool {
	p := &r.plan
	low := p.low()
	op := min(r.tail.head, p.head)
	if !p.newer { // the log is that of the view already, only shorter
		return r.matched(r.tail.head)
	}
	for ; op > r.committed && op >= low; op-- {
		if r.same(op, named(p.headers, op)) {
			return r.matched(op)
		}
	}
	if op <= r.committed {
		return r.matched(r.committed)
	}
	if p.search == 0 {
		p.search = op + 1
		if h := named(p.headers, op+1); h != nil {
			return r.foundBelow(h, out)
		}
	}
	r.fetch(p.search, p.search, out)
	return false
}

func (r *Replica) matched(op uint64) bool {
	r.plan.found, r.plan.match = true, op
	r.repair.active = false
	r.disarm(timerRepair)
	return true
}

// same reports whether the own entry at op is h.
func (r *Replica) same(op uint64, h *wire.PrepareHeader) bool {
	own := r.tail.header(op)
	return own != nil && h != nil && own.Checksum == h.Checksum
}

// foundBelow takes an entry of the view's log at search: the own entry below it is in that log, or is
// not and the search goes on below. It never goes below the commit point.
func (r *Replica) foundBelow(h *wire.PrepareHeader, out *Output) bool {
	p := &r.plan
	below := h.Op - 1
	own := r.tail.header(below)
	if below <= r.committed || own != nil && own.Checksum == h.Parent {
		return r.matched(below)
	}
	p.search = below
	r.fetch(below, below, out)
	return false
}

// store removes what is not in the view's log and records the headers of what is missing. It reports
// whether there is nothing left to do.
func (r *Replica) store(out *Output) bool {
	p := &r.plan
	cut := r.tail.head > p.match
	missing := p.head > r.tail.head && p.newer && !p.stored
	if !cut && !missing {
		return true
	}
	if r.storing {
		return false
	}
	if cut {
		r.refuseCut(p.match+1, p.commit, out)
		r.truncate(p.match+1, out)
	}
	for i := range p.headers {
		if p.headers[i].Op > r.tail.head {
			out.Adopt = append(out.Adopt, p.headers[i])
		}
	}
	out.AdoptView = p.view
	p.stored, r.storing = true, true
	return false
}

// refuseCut answers the requests that wait for ops the view's log does not have. Where it has committed
// another one, the request is surely not executed. Above, as long as too few members have taken on this
// log, a later view may still find the op at a member that has not.
func (r *Replica) refuseCut(op, commit uint64, out *Output) {
	head := r.tail.head
	r.tail.head = min(head, commit)
	r.refuseFrom(op, wire.CodeTransientNotAccepted, WhyViewChange, out)
	r.tail.head = head
	r.refuseFrom(op, wire.CodeTransientNotCommitted, WhyViewChange, out)
}

func (r *Replica) adoptStored(out *Output) {
	if !r.storing {
		out.fault(FaultCompletion)
		return
	}
	r.storing = false
	r.pursue(out)
}

// adopted is the end of a plan: the log is that of the view, and stable storage says so.
func (r *Replica) adopted(out *Output) {
	p := r.plan
	r.plan = plan{}
	r.goal = max(p.head, r.tail.head)
	if len(r.names) > 0 {
		r.goal = max(r.goal, r.names[0].Op)
	}
	r.acked = p.commit
	r.drain(out)
	if r.leader() == r.group.Self {
		r.begin(out)
		return
	}
	r.refuseFrom(r.committed+1, wire.CodeTransientNotCommitted, WhyViewChange, out)
	r.status, r.lossy = statusNormal, false
	r.election = election{}
	r.rejoin.settle(p.head, p.fresh)
	r.learn(out)
	r.missing(0, out)
}
