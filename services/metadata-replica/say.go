package metadatareplica

import "github.com/whippet-mq/whippet/libs/control"

// say tells people something of the metadata.
func (r *Replica) say(e control.Event) {
	e.Groups = []string{control.MetadataGroup}
	r.events.Say(e)
}

// sayNodes tells which registered nodes give no sign of life, and which do again. Only the primary hears them, and not
// before they had time to find it.
func (r *Replica) sayNodes() {
	if !r.primary {
		r.silent = [256]bool{}
		return
	}
	now := r.engine.Now()
	for id := range r.current.Nodes() {
		silent := r.nodes.absent(id, now) > aliveFor
		if silent == r.silent[id] {
			continue
		}
		kind := control.Heard
		if r.silent[id] = silent; silent {
			kind = control.Silent
		}
		r.events.Say(control.Event{Kind: kind, Node: &id})
	}
}

// tell says that this process began or ceased to lead.
func (r *Replica) tell(primary bool, view uint32) {
	switch {
	case primary == r.told:
		return
	case primary:
		r.say(control.Event{Kind: control.Leads, View: view})
	default:
		r.say(control.Event{Kind: control.Follows, View: view})
	}
	r.told = primary
}
