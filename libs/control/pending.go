package control

import (
	"slices"
	"strings"
	"time"
)

// maxEvents bounds the events of a message, and so what waits on a channel.
const maxEvents = 64

// maxReason bounds the text of a reason, in bytes.
const maxReason = 256

// bound fills in what an event always has, and cuts what could make it large.
func (e *Event) bound() {
	if e.At = time.Now().UnixMicro(); e.Count == 0 {
		e.Count = 1
	}
	e.Groups = slices.Clip(e.Groups[:min(len(e.Groups), MaxGroups)])
	if len(e.Reason) > maxReason {
		e.Reason = strings.ToValidUTF8(e.Reason[:maxReason], "") + "…"
	}
}

// pending is what was said on a channel and is not sent yet.
type pending struct {
	events  []Event
	dropped uint64
}

// add notes an event: with one that is like it, if there is one, else as the newest.
func (p *pending) add(e Event) {
	for i := range p.events {
		if p.events[i].like(&e) {
			p.events[i].merge(&e)
			return
		}
	}
	if len(p.events) == maxEvents {
		p.dropped += p.events[0].Count
		p.events = slices.Delete(p.events, 0, 1)
	}
	p.events = append(p.events, e)
}

// like reports whether two events can be told in one.
func (e *Event) like(o *Event) bool {
	switch {
	case e.Kind != o.Kind || e.Reason != o.Reason || (e.Node == nil) != (o.Node == nil) || (e.Progress == nil) != (o.Progress == nil):
		return false
	case e.Node != nil && *e.Node != *o.Node:
		return false
	case e.Progress != nil && e.Progress.Task != o.Progress.Task:
		return false
	}
	return slices.Contains(e.Groups, MetadataGroup) == slices.Contains(o.Groups, MetadataGroup)
}

// merge counts a later event in.
func (e *Event) merge(later *Event) {
	e.Count += later.Count
	e.View = max(e.View, later.View)
	for _, g := range later.Groups {
		if len(e.Groups) < MaxGroups && !slices.Contains(e.Groups, g) {
			e.Groups = append(e.Groups, g)
		}
	}
	if later.Progress != nil {
		e.Progress = later.Progress
	}
}
