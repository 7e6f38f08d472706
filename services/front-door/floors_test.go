package frontdoor

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/wire"
)

// Floors rise and never fall, except over a purge, of which the view is all that stays.
func TestFloorsRise(t *testing.T) {
	f, now := newFloors(), time.Now()
	for i, c := range []struct {
		purges uint64
		shown  wire.Floor
		want   wire.Floor // as of as many purges
	}{
		{0, wire.Floor{View: 0, Next: 3}, wire.Floor{View: 0, Next: 3}},
		{0, wire.Floor{View: 2, Next: 5}, wire.Floor{View: 2, Next: 5}},
		{0, wire.Floor{View: 2, Next: 4}, wire.Floor{View: 2, Next: 5}},
		{0, wire.Floor{View: 1, Next: 9}, wire.Floor{View: 2, Next: 5}},
		{0, wire.Floor{View: 3, Next: 1}, wire.Floor{View: 3, Next: 1}}, // lost for good in a power cut
		{1, wire.Floor{View: 3, Next: 0}, wire.Floor{View: 3, Next: 0}},
		{1, wire.Floor{View: 3, Next: 2}, wire.Floor{View: 3, Next: 2}},
		{0, wire.Floor{View: 3, Next: 7}, wire.Floor{View: 3, Next: 0}}, // resolved before the purge, answered after it
		{1, wire.Floor{View: 3, Next: 0}, wire.Floor{View: 3, Next: 2}},
		{0, wire.Floor{View: 4, Next: 7}, wire.Floor{View: 4, Next: 0}},
	} {
		f.show(now, 1, c.purges, c.shown)
		if got := f.of(now, 1, c.purges); got != c.want {
			t.Errorf("step %d: %+v, want %+v", i, got, c.want)
		}
	}
	if got := f.of(now, 1, 2); got != (wire.Floor{View: 4}) {
		t.Errorf("after a purge nobody was shown: %+v", got)
	}
	if got := f.of(now, 2, 0); got != (wire.Floor{}) {
		t.Errorf("a group nobody asked for: %+v", got)
	}
}

// What is not shown any more is forgotten, what is stays; and there is a limit.
func TestFloorsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFloors()
		used, idle := wire.Floor{View: 1, Next: 2}, wire.Floor{View: 1, Next: 3}
		f.show(time.Now(), 2, 0, idle)
		for range 10 {
			f.show(time.Now(), 1, 0, used)
			time.Sleep(floorFor / 3)
		}
		if f.of(time.Now(), 1, 0) != used || f.of(time.Now(), 2, 0) != (wire.Floor{}) {
			t.Errorf("used %+v, idle %+v", f.of(time.Now(), 1, 0), f.of(time.Now(), 2, 0))
		}
		time.Sleep(2 * floorFor)
		if f.of(time.Now(), 1, 0) != (wire.Floor{}) || len(f.recent)+len(f.before) != 0 {
			t.Errorf("%d groups are remembered", len(f.recent)+len(f.before))
		}
		for group := range uint64(3 * maxFloors) {
			f.show(time.Now(), group, 0, used)
		}
		if n := len(f.recent) + len(f.before); n > 2*maxFloors || f.of(time.Now(), 3*maxFloors-1, 0) != used {
			t.Errorf("%d groups are remembered", n)
		}
	})
}

// Reads carry what sends, polls and stores of any connection were shown through this front-door, and a replica
// below it is left for another one.
func TestReadsCarryTheFloor(t *testing.T) {
	c := startCluster(t, nil)
	first := c.root(t)
	first.topic("s", "t", 1)
	view := uint32(1) // node 12 leads
	var floors []wire.Floor
	c.nodes[11].refusing(notPrimary(1))
	c.parts.answer(func(call *link.Call) bool {
		call.View = view
		if call.Header.Operation == wire.OpNonReplicated {
			floors = append(floors, call.Floor)
		}
		return false
	})
	first.ok(first.call(wire.OpSendMessages, 0, sendBody(t, "s", "t", toPartition0, "a", "b", "c")))
	second := c.root(t)
	poll := pollBody("s", "t", wire.Consumer{Kind: wire.ConsumerSingle, ID: wire.NumericID(1)}, wire.SelectPartition(0))
	second.ok(second.read(wire.CmdPollMessages, poll))
	target := wire.OffsetTarget{
		Consumer: wire.Consumer{Kind: wire.ConsumerSingle, ID: wire.NumericID(1)}, Stream: wire.NamedID("s"), Topic: wire.NamedID("t"),
		Partition: wire.SelectPartition(0),
	}
	view = 4
	first.ok(first.call(wire.OpStoreOffset, 0, wire.StoreOffsetRequest{OffsetTarget: target, Offset: 1}.Append(nil)))
	second.ok(second.read(wire.CmdGetOffset, target.Append(nil)))
	want := []wire.Floor{{View: 1, Next: 3}, {View: 4, Next: 0}}
	if len(floors) != len(want) || floors[0] != want[0] || floors[1] != want[1] {
		t.Errorf("floors %+v, want %+v", floors, want)
	}
	before := c.nodes[13].calls()
	c.nodes[12].refusing(func(call *link.Call) bool { // as one does that was deposed and has not heard of it
		call.Status, call.Reason, call.View = wire.CodeTransientNotAccepted, link.ReasonNotPrimary, 1
		return true
	})
	second.ok(second.read(wire.CmdPollMessages, poll))
	if c.nodes[13].calls() == before {
		t.Error("no other member was asked")
	}
}
