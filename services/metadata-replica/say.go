package metadatareplica

import "github.com/whippet-mq/whippet/libs/control"

// say tells people something of the metadata.
func (r *Replica) say(e control.Event) {
	e.Groups = []string{control.MetadataGroup}
	r.events.Say(e)
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
