package partitionreplica

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// A call that was resolved at newer metadata waits until it is known here.
func TestRoutedCallWaits(t *testing.T) {
	w := open(t, vfs.NewMem(1), true)
	defer w.close()
	w.topic(1)
	early := w.call(wire.OpNonReplicated, 0)
	early.Header.Code = wire.CmdGetOffset
	early.MetadataOp++
	w.Routed().Serve(early)
	select {
	case <-early.Done():
		t.Fatalf("answered with %v before the metadata is here", early.Status)
	default:
	}
	w.change(wire.OpCreateStream, wire.CreateStreamRequest{Name: []byte("other")}.Append(nil))
	select {
	case <-early.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("not answered")
	}
	if early.Status != 0 {
		t.Errorf("status %v", early.Status)
	}
}

// A group that is not here, or belongs on other nodes, is refused with the op at which that is known.
func TestRoutedToAStranger(t *testing.T) {
	w := open(t, vfs.NewMem(1), false)
	defer w.close()
	w.topic(1)
	for name, group := range map[string]uint64{"deleted": wire.GroupID(0, 0, 0, 1), "elsewhere": w.placed(t)} {
		c := w.call(wire.OpNonReplicated, 0)
		c.Header.Code, c.Group, c.MetadataOp = wire.CmdPollMessages, group, 1
		w.Routed().Serve(c)
		<-c.Done()
		if c.Status != wire.CodeTransientNotAccepted || c.Reason != link.ReasonUnknownGroup || c.MetadataOp != w.meta.View().Op {
			t.Errorf("%s: status %v, reason %v, op %d", name, c.Status, c.Reason, c.MetadataOp)
		}
	}
	own := w.call(wire.OpNonReplicated, 0)
	own.Header.Code = wire.CmdGetOffset
	w.Routed().Serve(own)
	if <-own.Done(); own.Status != 0 {
		t.Errorf("status %v for a group that belongs here", own.Status)
	}
}

// placed makes a topic whose partition is on nodes 7, 8 and 9, in a view of its own that the replica
// is given.
func (w *world) placed(t *testing.T) uint64 {
	t.Helper()
	v := w.meta.View()
	body := wire.CreateTopicRequest{Stream: wire.NamedID("s"), PartitionsCount: 1, Name: []byte("far")}.Append(nil)
	op, logged, code := v.Admit(nil, &metadata.Request{Operation: wire.OpCreateTopic, Body: body, Place: func(int) [][]byte { return [][]byte{{7, 8, 9}} }})
	if code != 0 {
		t.Fatal(code)
	}
	h := wire.PrepareHeader{Op: v.Op, Timestamp: v.Time, Operation: op, Group: wire.MetadataGroup}
	next, reply := v.Apply(&h, logged)
	if reply.Code != 0 {
		t.Fatal(reply.Code)
	}
	w.follower = still{next}
	topic, _ := next.Topic(wire.NamedID("s"), wire.NamedID("far"))
	p, _ := topic.Partition(0)
	return topic.GroupID(&p)
}

// A loop that lost records fences the partitions this node may have had, not those of other nodes.
func TestLostLogOfOtherNodes(t *testing.T) {
	w := open(t, vfs.NewMem(1), false)
	defer w.close()
	w.topic(1)
	w.hostFor(w.engines[0], w.group(0))
	far := w.placed(t)
	w.hostLost(w.engines[0], 0, 1)
	if w.find(far) != nil {
		t.Error("hosts a partition of other nodes")
	}
}

// still is a follower that stands.
type still struct{ view *metadata.View }

func (s still) View() *metadata.View     { return s.view }
func (s still) Changed() <-chan struct{} { return nil }

// The wait for metadata has an end.
func TestRoutedCallGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Replica{follower: still{metadata.New(metadata.RootUser{Name: "root"}, metadata.Limits{})}, stop: make(chan struct{})}
		c := link.NewCall()
		c.MetadataOp = 1
		begun := time.Now()
		r.Routed().Serve(c)
		<-c.Done()
		if c.Status != wire.CodeTransientNotAccepted || c.Reason != link.ReasonBehind || time.Since(begun) != behindFor {
			t.Errorf("status %v, reason %v after %v", c.Status, c.Reason, time.Since(begun))
		}
	})
}
