package metadatareplica

import (
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/control"
)

// told is the next thing a replica tells people.
func told(t *testing.T, heard *control.Subscription) control.Event {
	t.Helper()
	select {
	case d := <-heard.C:
		m, err := control.Decode(d.Payload)
		if err != nil || len(m.Events) != 1 {
			t.Fatalf("%+v, %v", m, err)
		}
		return m.Events[0]
	case <-time.After(time.Minute):
		t.Fatal("nothing is told")
		return control.Event{}
	}
}

// What a primary does not hear any more it tells once, and once that it does again; a new one not before the
// nodes had time to find it. Who leads is told when it changes.
func TestTells(t *testing.T) {
	bus := control.NewLocal()
	heard, err := bus.Subscribe(control.All(""))
	if err != nil {
		t.Fatal(err)
	}
	r := newRoster(t, 1)
	r.events = control.NewPublisher(control.PublisherConfig{Source: control.Source{Role: control.RoleMetadata}, Buses: []control.Bus{bus}})
	defer r.events.Close()
	n := r.register(node(1, ""))
	r.sweep()
	r.now += aliveFor + 1
	r.Role(true, 1) // of another term: the clock of silence begins anew
	r.sweep()
	if e := told(t, heard); e.Kind != control.Leads || e.View != 1 || e.Groups[0] != control.MetadataGroup {
		t.Errorf("told %+v", e)
	}
	r.Role(true, 2)
	r.now += aliveFor + 1
	r.sweep()
	r.sweep()
	if e := told(t, heard); e.Kind != control.Silent || e.Count != 1 || *e.Node != n.ID {
		t.Errorf("told %+v", e)
	}
	r.alive(n)
	r.sweep()
	if e := told(t, heard); e.Kind != control.Heard || e.Count != 1 || *e.Node != n.ID {
		t.Errorf("told %+v", e)
	}
	r.Role(false, 3)
	if e := told(t, heard); e.Kind != control.Follows || e.View != 3 {
		t.Errorf("told %+v", e)
	}
}
