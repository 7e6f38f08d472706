package partitionreplica

import (
	"testing"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/wire"
)

// deposed is a trio in which another member leads by now, and the one that led before has not heard of it: the
// frames between them are lost, while its pings are answered.
func deposed(t *testing.T) (c *trio, old, leads *member) {
	t.Helper()
	c = newTrio(t, 1)
	c.send(10)
	old = c.primary()
	c.run(2_000_000)
	c.alone = old
	for _, m := range c.nodes {
		if m != old {
			m.engines[0].NodeDead(old.node)
		}
	}
	for range 100 {
		c.run(20_000)
		for _, m := range c.nodes {
			if p := m.find(m.group(0)); m != old && p != nil && p.leads() {
				return c, old, m
			}
		}
	}
	t.Fatal("nobody else leads")
	return nil, nil, nil
}

// A front-door that has seen a newer primary is answered by no older one, which believes to lead: neither polls
// nor stored offsets go back.
func TestBelowTheFloor(t *testing.T) {
	c, old, leads := deposed(t)
	sent := c.do(leads, c.numbered(leads.sendCall(0, "second")))
	stored := c.do(leads, leads.storeCall(plain(1), 0, 1))
	if sent.Status != 0 || stored.Status != 0 || sent.View == 0 || stored.View != sent.View {
		t.Fatalf("send: status %v, view %d; store: status %v, view %d", sent.Status, sent.View, stored.Status, stored.View)
	}
	floor := wire.Floor{View: sent.View, Next: 2}
	offset := func(m *member) *link.Call {
		q := m.storeCall(plain(1), 0, 0)
		q.Header.Operation, q.Header.Code = wire.OpNonReplicated, wire.CmdGetOffset
		return q
	}
	for name, call := range map[string]func(*member) *link.Call{
		"poll":   func(m *member) *link.Call { return m.pollCall(plain(2), 0, 10, false) },
		"offset": offset,
	} {
		if stale := c.do(old, call(old)); stale.Status != 0 || stale.View >= sent.View {
			t.Fatalf("%s: the old primary answers %v in view %d: the test tests nothing", name, stale.Status, stale.View)
		}
		q := call(old)
		q.Floor = floor
		if c.do(old, q); q.Status != wire.CodeTransientNotAccepted || q.Reason != link.ReasonNotPrimary {
			t.Errorf("%s at the old primary: status %v, reason %v", name, q.Status, q.Reason)
		}
		q = call(leads)
		q.Floor = floor
		if c.do(leads, q); q.Status != 0 || q.View != sent.View {
			t.Errorf("%s at the new primary: status %v, reason %v, view %d", name, q.Status, q.Reason, q.View)
		}
	}
}

// A primary whose log ends below what was shown in its own view knows of a purge that the caller will hear of,
// and says as of when. In an older view more may have been shown: then the members gave it up.
func TestShownBeforeAPurge(t *testing.T) {
	c := newTrio(t, 2)
	c.send(10)
	m := c.primary()
	view := m.find(m.group(0)).group.View()
	poll := func(f wire.Floor) *link.Call {
		q := m.pollCall(plain(1), 0, 10, false)
		q.Floor = f
		return c.do(m, q)
	}
	if q := poll(wire.Floor{View: view, Next: 1}); q.Status != 0 {
		t.Errorf("at the floor: status %v, reason %v", q.Status, q.Reason)
	}
	if q := poll(wire.Floor{View: view, Next: 2}); q.Status != wire.CodeTransientNotAccepted || q.Reason != link.ReasonBehind || q.MetadataOp != m.follower.View().Op {
		t.Errorf("below the floor: status %v, reason %v, op %d", q.Status, q.Reason, q.MetadataOp)
	}
	m.stop(false)
	m = c.primary()
	if q := poll(wire.Floor{View: view, Next: 99}); q.Status != 0 {
		t.Errorf("in a newer view: status %v, reason %v", q.Status, q.Reason)
	}
}
