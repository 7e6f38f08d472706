//go:build linux

package cluster

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	staleness = 500 * time.Millisecond // how old an answer of another node may be once the network was bad
	checkTime = 20 * time.Second       // for one object
	everyNode = -1
	forever   = math.MaxInt64
)

// violation is a broken promise about one object.
type violation struct {
	object, text string
	node         int // everyNode, or the one whose clients alone see it
	model        porcupine.Model
	history      []porcupine.Operation // of the object, to draw
}

func (v *violation) String() string {
	who := "all nodes"
	if v.node != everyNode {
		who = fmt.Sprintf("clients of node %d", v.node)
	}
	return fmt.Sprintf("%s, as %s see it: %s", v.object, who, v.text)
}

// checkHistory holds the events against what is promised (design-arguments 14): seen through one node,
// everything is linearizable; over all nodes, polls and reads of offsets are so with what was true at any
// time since staleness before they began, and everything else without exception. While the network has not
// been bad yet, nothing is stale. final are the messages of the partitions, read when all was over.
func checkHistory(events []*event, final map[string][]uint64, nodes int, calm string) (found []*violation) {
	objects := map[string][]*event{}
	for _, e := range events {
		if e.Result == wrong {
			found = append(found, &violation{object: e.Object, node: e.Node, text: "an answer nobody should have given: " + e.String()})
		}
		if e.Result == refused || e.Result == wrong {
			continue
		}
		objects[e.Object] = append(objects[e.Object], e)
	}
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		all := objects[name]
		for node := everyNode; node < nodes; node++ {
			var v *violation
			switch all[0].Kind {
			case sendKind, pollKind:
				v = checkLog(all, final[name], node, calm)
			case storeKind, offsetKind:
				v = checkOffsets(all, node, calm)
			default:
				if node == everyNode { // metadata has no exception that a node's own view would have to close
					v = checkRegister(streamModel, all, node, calm)
				}
			}
			if v != nil {
				v.object, v.node = name, node
				found = append(found, v)
			}
		}
	}
	return found
}

// interval is when an event took effect at the earliest and at the latest, for who looks through one node or
// through all. false: it says nothing to them.
func interval(e *event, node int, calm string) (from, to int64, ok bool) {
	from, to = e.Call, e.Return
	reads := e.Kind == pollKind || e.Kind == offsetKind
	if e.Result == unknown {
		return from, forever, !reads && e.Kind != existsKind
	}
	switch {
	case node == everyNode && reads && e.Phase != calm:
		from -= staleness.Nanoseconds()
	case node != everyNode && e.Node != node:
		return from, forever, !reads // what other nodes acknowledge may get here later
	}
	return from, to, true
}

// Models of objects with a value, which is 0 when there is none.
var (
	offsetModel = registerModel(func(value uint64, e *event) (bool, uint64) {
		if e.Kind == storeKind {
			return true, e.Value
		}
		return value == e.Offset, value // of a consumer without an offset: 0, as the client says
	})
	streamModel = registerModel(func(exists uint64, e *event) (bool, uint64) {
		want, next := uint64(0), uint64(1)
		switch e.Kind {
		case deleteKind:
			want, next = 1, 0
		case existsKind:
			want, next = 1, exists
		}
		switch e.Result {
		case done:
			return exists == want, next
		case no:
			return exists != want, exists
		}
		return true, next
	})
)

func registerModel(step func(value uint64, e *event) (bool, uint64)) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return uint64(0) },
		Step: func(state, input, _ any) (bool, any) {
			ok, next := step(state.(uint64), input.(*event))
			return ok, next
		},
		DescribeOperation: func(input, _ any) string { return input.(*event).text() },
		DescribeState:     func(state any) string { return fmt.Sprint(state) },
	}
}

// operations are the events of an object as porcupine wants them.
func operations(events []*event, node int, calm string) (all []porcupine.Operation) {
	seen := map[uint64]bool{}
	for _, e := range events {
		if e.Kind == offsetKind && e.Result == done {
			seen[e.Offset] = true
		}
	}
	for _, e := range events {
		if e.Kind == storeKind && e.Result == unknown && !seen[e.Value] {
			continue // nobody saw it: it need not have happened
		}
		if from, to, ok := interval(e, node, calm); ok {
			all = append(all, porcupine.Operation{ClientId: e.Client, Input: e, Call: from, Return: to})
		}
	}
	return all
}

func checkRegister(m porcupine.Model, events []*event, node int, calm string) *violation {
	all := operations(events, node, calm)
	switch porcupine.CheckOperationsTimeout(m, all, checkTime) {
	case porcupine.Illegal:
		return &violation{text: "not linearizable", model: m, history: all}
	case porcupine.Unknown:
		return &violation{text: fmt.Sprintf("could not be checked within %v", checkTime), model: m, history: all}
	}
	return nil
}
