package vsr

import "github.com/whippet-mq/whippet/libs/wire"

// frame takes a frame of another member.
func (r *Replica) frame(in *Input, out *Output) {
	carries := in.Header != nil && (in.Header.Command() == wire.CommandPrepare || in.Header.Command() == wire.CommandRepairPrepare)
	kept := r.addressed(in, out) && r.dispatch(in, out)
	if carries && !kept {
		out.Drop = append(out.Drop, in.Body)
	}
}

// addressed reports whether the frame is for this group, from another member of it.
func (r *Replica) addressed(in *Input, out *Output) bool {
	if in.Header == nil {
		out.fault(FaultFrame)
		return false
	}
	if group, ok := wire.GroupOf(in.Header); !ok || group != r.group.ID {
		out.fault(FaultGroup)
		return false
	}
	if in.From >= r.group.Members || in.From == r.group.Self || r.group.Self == NoMember {
		out.fault(FaultSender)
		return false
	}
	return true
}

// dispatch reports whether the token of the frame's body was kept.
func (r *Replica) dispatch(in *Input, out *Output) bool {
	switch c := in.Header.Command(); {
	case c == wire.CommandPrepare || c == wire.CommandRepairPrepare:
		return r.prepare(in, out)
	case r.halted:
	case c == wire.CommandPrepareOk:
		r.prepareOk(in, out)
	case c == wire.CommandCommit:
		r.commitFrame(in, out)
	case c == wire.CommandStartViewChange:
		r.startViewChange(in, out)
	case c == wire.CommandDoViewChange:
		r.doViewChange(in, out)
	case c == wire.CommandStartView:
		r.startView(in, out)
	case c == wire.CommandRequestStartView:
		r.requestStartView(in, out)
	case c == wire.CommandRequestPrepares:
		r.requestPrepares(in, out)
	case c == wire.CommandRepairDone || c == wire.CommandRangeEvicted:
		r.repairEnd(in, out)
	default:
		out.fault(FaultFrame)
	}
	return false
}

// fromPeer checks what every frame but a prepare says of its sender. A connection proves who sent it;
// the frame must not say otherwise (design-arguments 18).
func (r *Replica) fromPeer(p *wire.Preamble, in *Input, out *Output) bool {
	switch {
	case p.Cluster != r.group.Cluster:
		out.fault(FaultGroup)
	case p.Replica != in.From:
		out.fault(FaultSender)
	default:
		return true
	}
	return false
}

// preamble opens a frame of this member.
func (r *Replica) preamble(view uint32) wire.Preamble {
	return wire.Preamble{Cluster: r.group.Cluster, View: view, Replica: r.group.Self}
}

// fault notes the first fault of a Step.
func (o *Output) fault(f Fault) {
	if o.Fault == FaultNone {
		o.Fault = f
	}
}
