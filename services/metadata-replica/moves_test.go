package metadatareplica

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/placement"
	"github.com/whippet-mq/whippet/libs/wire"
)

// ask gives an operator's command and returns what the primary says; "" when it was ordered.
func (r *roster) ask(q placement.Command) (*placement.Cluster, string) {
	r.t.Helper()
	body, err := json.Marshal(q)
	if err != nil {
		r.t.Fatal(err)
	}
	c := r.internal(link.InternalPlacement, body)
	if c.Status != 0 {
		r.t.Fatalf("status %v", c.Status)
	}
	var a placement.Answer
	if len(c.Out) > 0 && c.Out[0] == '{' {
		if err := json.Unmarshal(c.Out, &a); err != nil {
			r.t.Fatal(err)
		}
		return a.Cluster, a.Refused
	}
	if _, err := wire.DecodeResult(c.Out); err != nil {
		return nil, err.Error()
	}
	return nil, ""
}

// What would lose data, or makes no sense, is refused with words that say why; what does not is ordered.
func TestCommandsThatAreRefused(t *testing.T) {
	r := newRoster(t, 3)
	var nodes []wire.Node
	for i := range uint64(5) {
		nodes = append(nodes, r.register(node(i+1, "")))
	}
	client, session := r.stream()
	if code, _ := r.create(client, session, 2, "t", 1); code != 0 {
		t.Fatal(code)
	}
	at, _ := r.ask(placement.Command{Do: placement.DoStatus})
	if len(at.Nodes) != 5 || len(at.Partitions) != 1 || len(at.Partitions[0].Members) != 3 {
		t.Fatalf("%+v", at)
	}
	p := at.Partitions[0]
	in := p.Members
	var out []int
	for _, n := range at.Nodes {
		if n.ID != in[0] && n.ID != in[1] && n.ID != in[2] {
			out = append(out, n.ID)
		}
	}
	move := func(members ...int) placement.Command {
		return placement.Command{Do: placement.DoMove, Group: p.Group, Members: members}
	}
	refused := func(q placement.Command, why string) {
		t.Helper()
		if _, got := r.ask(q); !strings.Contains(got, why) {
			t.Errorf("%+v: %q, want it to say %q", q, got, why)
		}
	}
	refused(placement.Command{Do: "dance"}, "no command")
	refused(placement.Command{Do: placement.DoMove, Group: p.Group + 1, Members: in}, "not there")
	refused(move(in...), "there already")
	refused(move(in[0], in[1]), "their number stays")
	refused(move(in[0], in[1], in[1]), "named twice")
	refused(move(in[0], in[1], 99), "no partition replica 99")
	refused(move(in[0], in[1], -1), "no partition replica -1")
	refused(placement.Command{Do: placement.DoCancel, Group: p.Group}, "not moving")
	refused(placement.Command{Do: placement.DoDrain, Node: 99}, "no partition replica 99")
	refused(placement.Command{Do: placement.DoRemove, Node: in[0]}, "drain it first")
	refused(placement.Command{Do: placement.DoRemove, Node: out[0]}, "stop it first")

	if _, got := r.ask(placement.Command{Do: placement.DoDrain, Node: out[0]}); got != "" {
		t.Fatal(got)
	}
	refused(move(in[0], in[1], out[0]), "being drained")
	r.now += aliveFor + 1
	refused(move(in[0], in[1], out[1]), "is down")
	for _, n := range nodes { // one member and one other are up again
		if int(n.ID) == in[0] || int(n.ID) == out[1] {
			r.internal(link.InternalAlive, n.Append(nil))
		}
	}
	refused(move(in[0], in[1], out[1]), "without losing anything")
	for _, n := range nodes {
		r.internal(link.InternalAlive, n.Append(nil))
	}
	if _, got := r.ask(move(in[0], in[1], out[1])); got != "" {
		t.Fatal(got)
	}
	refused(move(in[0], in[2], out[1]), "moving to")
	if _, got := r.ask(placement.Command{Do: placement.DoCancel, Group: p.Group}); got != "" {
		t.Error(got)
	}
	if at, _ := r.ask(placement.Command{Do: placement.DoStatus}); len(at.Partitions[0].Target) != 0 || at.Partitions[0].Group != p.Group {
		t.Errorf("%+v", at.Partitions[0])
	}
}
