package frontdoor

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/wire"
)

// A send that replicas refuse is repeated under one number until it is taken; the client sees one
// success.
func TestSendIsRepeated(t *testing.T) {
	w := start(t, nil)
	c := w.root(t)
	c.topic("s", "t", 3) // a send that chose anew at each repeat would end on partition 1
	reasons := []link.Reason{link.ReasonUnknownGroup, link.ReasonBusy, link.ReasonNotPrimary, link.ReasonBehind}
	w.parts.answer(func(call *link.Call) bool {
		if call.Header.Operation != wire.OpSendMessages || len(reasons) == 0 {
			return false
		}
		call.Status, call.Reason = wire.CodeTransientNotAccepted, reasons[0]
		reasons = reasons[1:]
		return true
	})
	balanced := wire.Partitioning{Kind: wire.PartitioningBalanced}
	confirmed, err := wire.DecodeConfirmations(c.ok(c.call(wire.OpSendMessages, 0, sendBody(t, "s", "t", balanced, "m"))))
	if err != nil || confirmed[0] != (wire.Confirmation{}) {
		t.Fatalf("%+v %v", confirmed, err)
	}
	if got, want := w.parts.numbers(), []uint64{1, 1, 1, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("numbers %v, want %v", got, want)
	}
}

// A partition without room has its sends refused soon: they hold memory. One that may have been executed is
// repeated as long as any other.
func TestSendWithoutRoom(t *testing.T) {
	const patience = 100 * time.Millisecond
	w := start(t, func(c *Config) { c.BusyFor = patience })
	c := w.root(t)
	c.topic("s", "t", 1)
	refused := 0
	w.parts.answer(func(call *link.Call) bool {
		if call.Header.Operation != wire.OpSendMessages || refused == 15 { // 15 pauses are far more than patience
			return false
		}
		call.Status, call.Reason = wire.CodeTransientNotAccepted, link.ReasonBusy
		refused++
		return true
	})
	begun := time.Now()
	if a := c.call(wire.OpSendMessages, 0, sendBody(t, "s", "t", toPartition0, "m")); a.Status != wire.CodeTransientNotAccepted {
		t.Errorf("status %v", a.Status)
	}
	if took := time.Since(begun); took < patience || refused < 3 {
		t.Errorf("given up after %v and %d refusals", took, refused)
	}
	w.parts.answer(func(call *link.Call) bool {
		if call.Header.Operation != wire.OpSendMessages || refused == 30 {
			return false
		}
		call.Status, call.Reason = wire.CodeTransientNotCommitted, link.ReasonBusy
		if refused++; refused > 20 {
			call.Status = wire.CodeTransientNotAccepted
		}
		return true
	})
	refused = 15
	c.ok(c.call(wire.OpSendMessages, 0, sendBody(t, "s", "t", toPartition0, "m")))
}

// A partition that was without a primary for longer than one without room is given, and has no room at once when it
// has one, is given that time then.
func TestSendToABusyNewPrimary(t *testing.T) {
	const patience = 100 * time.Millisecond
	w := start(t, func(c *Config) { c.BusyFor = patience })
	c := w.root(t)
	c.topic("s", "t", 1)
	begun, busy := time.Now(), 0
	w.parts.answer(func(call *link.Call) bool {
		switch {
		case call.Header.Operation != wire.OpSendMessages || busy == 2:
			return false
		case time.Since(begun) < 2*patience:
			call.Status, call.Reason = wire.CodeTransientNotAccepted, link.ReasonNotPrimary
		default:
			call.Status, call.Reason = wire.CodeTransientNotAccepted, link.ReasonBusy
			busy++
		}
		return true
	})
	c.ok(c.call(wire.OpSendMessages, 0, sendBody(t, "s", "t", toPartition0, "m")))
}

// A front-door that is asked to stop answers the request in progress, however often it has to be repeated.
func TestStopAnswersFirst(t *testing.T) {
	w := start(t, nil)
	c := w.root(t)
	c.topic("s", "t", 1)
	refused := 0
	stopped := make(chan error, 1)
	w.parts.answer(func(call *link.Call) bool {
		if call.Header.Operation != wire.OpSendMessages || refused == 5 {
			return false
		}
		if refused++; refused == 1 {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			go func() { defer cancel(); stopped <- w.Stop(ctx) }()
			for !w.core.stopping.Load() {
				runtime.Gosched()
			}
		}
		call.Status, call.Reason = wire.CodeTransientNotAccepted, link.ReasonNotPrimary
		return true
	})
	c.ok(c.call(wire.OpSendMessages, 0, sendBody(t, "s", "t", toPartition0, "m")))
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// A partition nobody hosts is given three seconds, here less, then the client is told.
func TestUnroutable(t *testing.T) {
	const patience = 400 * time.Millisecond // a third try is due after 15 ms
	w := start(t, func(c *Config) { c.RouteFor = patience })
	c := w.root(t)
	c.topic("s", "t", 1)
	w.parts.answer(func(call *link.Call) bool {
		call.Status, call.Reason = wire.CodeTransientNotAccepted, link.ReasonUnknownGroup
		return true
	})
	begun := time.Now()
	if a := c.call(wire.OpSendMessages, 0, sendBody(t, "s", "t", wire.Partitioning{Kind: wire.PartitioningPartition}, "m")); a.Status != wire.CodeTransientNotAccepted {
		t.Errorf("send: %v", a.Status)
	}
	if spent := time.Since(begun); spent < patience || spent > 5*time.Second {
		t.Errorf("answered after %v", spent)
	}
	if n := len(w.parts.numbers()); n < 3 {
		t.Errorf("tried %d times", n)
	}
}

// A partition that vanishes while a send is repeated ends the repeats with the answer for what does
// not exist.
func TestTargetVanishesDuringRepeats(t *testing.T) {
	w := start(t, nil)
	c, admin := w.root(t), w.root(t)
	c.topic("s", "t", 1)
	started := make(chan struct{}, 1)
	w.parts.answer(func(call *link.Call) bool {
		if call.Header.Operation != wire.OpSendMessages {
			return false
		}
		select {
		case started <- struct{}{}:
		default:
		}
		call.Status, call.Reason = wire.CodeTransientNotAccepted, link.ReasonBehind
		return true
	})
	body := sendBody(t, "s", "t", wire.Partitioning{Kind: wire.PartitioningPartition}, "m")
	c.write(frameOf(c.header(wire.OpSendMessages, 0, body), body))
	<-started
	admin.ok(admin.call(wire.OpDeleteStream, 0, wire.StreamTarget{Stream: wire.NamedID("s")}.Append(nil)))
	if a := c.next(); a.Status != wire.CodeResourceNotFound {
		t.Errorf("status %v", a.Status)
	}
}

// A send answered 57 keeps its number when the client repeats it, and loses it when it sends
// something else.
func TestRepeatAfterUnknownOutcome(t *testing.T) {
	w := start(t, nil)
	c := w.root(t)
	c.topic("s", "t", 1)
	w.parts.answer(func(call *link.Call) bool {
		if call.Header.Operation != wire.OpSendMessages || len(w.parts.writes) != 1 {
			return false
		}
		call.Frame.Release() // taken over, then lost its outcome
		call.Frame = nil
		call.Status, call.Reason = wire.CodeTransientNotCommitted, link.ReasonViewChange
		return true
	})
	first := wire.Partitioning{Kind: wire.PartitioningPartition}
	body := sendBody(t, "s", "t", first, "m")
	if a := c.call(wire.OpSendMessages, 0, body); a.Status != wire.CodeTransientNotCommitted {
		t.Fatalf("status %v", a.Status)
	}
	c.ok(c.call(wire.OpSendMessages, 0, body))
	c.ok(c.call(wire.OpSendMessages, 0, body))
	if got, want := w.parts.numbers(), []uint64{1, 1, 3}; !slices.Equal(got, want) {
		t.Errorf("numbers %v, want %v", got, want)
	}
}

// An outcome that was open once stays open, whatever a later attempt is refused with: the client must not take
// its send for one that was not executed, and its repeat keeps the number.
func TestOpenOutcomeStaysOpen(t *testing.T) {
	w := start(t, nil)
	c := w.root(t)
	c.topic("s", "t", 1)
	w.parts.answer(func(call *link.Call) bool {
		if call.Header.Operation != wire.OpSendMessages || len(w.parts.writes) > 2 {
			return false
		}
		call.Status, call.Reason = wire.CodeTransientNotCommitted, link.ReasonViewChange
		if len(w.parts.writes) == 2 {
			call.Status, call.Reason = wire.CodeTransientNotAccepted, link.ReasonDiskFull // is not repeated
		}
		return true
	})
	body := sendBody(t, "s", "t", toPartition0, "m")
	if a := c.call(wire.OpSendMessages, 0, body); a.Status != wire.CodeTransientNotCommitted {
		t.Errorf("status %v", a.Status)
	}
	c.ok(c.call(wire.OpSendMessages, 0, body))
	if got, want := w.parts.numbers(), []uint64{1, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("numbers %v, want %v", got, want)
	}
}

// The repeat of a send whose partition the server chose goes to that partition: another one would
// not recognise it.
func TestRepeatOfABalancedSend(t *testing.T) {
	w := start(t, nil)
	c := w.root(t)
	c.topic("s", "t", 3)
	var groups []uint64
	w.parts.answer(func(call *link.Call) bool {
		if call.Header.Operation != wire.OpSendMessages {
			return false
		}
		if groups = append(groups, call.Group); len(groups) != 1 {
			return false
		}
		call.Frame.Release() // taken over, then lost its outcome
		call.Frame = nil
		call.Status, call.Reason = wire.CodeTransientNotCommitted, link.ReasonViewChange
		return true
	})
	body := sendBody(t, "s", "t", wire.Partitioning{Kind: wire.PartitioningBalanced}, "m")
	if a := c.call(wire.OpSendMessages, 0, body); a.Status != wire.CodeTransientNotCommitted {
		t.Fatalf("status %v", a.Status)
	}
	c.ok(c.call(wire.OpSendMessages, 0, body))
	c.ok(c.call(wire.OpSendMessages, 0, body))
	if groups[0] != groups[1] {
		t.Errorf("repeated at group %#x, first sent to %#x", groups[1], groups[0])
	}
	if groups[1] == groups[2] {
		t.Error("a new send went where the repeat did")
	}
}

// A full disk is not waited for.
func TestDiskFullIsPassedOn(t *testing.T) {
	w := start(t, nil)
	c := w.root(t)
	c.topic("s", "t", 1)
	w.parts.answer(func(call *link.Call) bool {
		call.Status, call.Reason = wire.CodeTransientNotAccepted, link.ReasonDiskFull
		return true
	})
	if a := c.call(wire.OpSendMessages, 0, sendBody(t, "s", "t", wire.Partitioning{Kind: wire.PartitioningPartition}, "m")); a.Status != wire.CodeTransientNotAccepted {
		t.Errorf("status %v", a.Status)
	}
	if n := len(w.parts.numbers()); n != 1 {
		t.Errorf("tried %d times", n)
	}
}

// A client that numbers its writes may repeat a send that was answered; others may send the same
// bytes twice and mean it.
func TestRepeatOfANumberedWrite(t *testing.T) {
	w := start(t, nil)
	c := w.root(t)
	c.topic("s", "t", 1)
	body := sendBody(t, "s", "t", wire.Partitioning{Kind: wire.PartitioningPartition}, "m")
	c.ok(c.call(wire.OpSendMessages, 0, body))
	c.ok(c.call(wire.OpSendMessages, 0, body))
	numbering := w.dial(t)
	login := wire.LoginPrefix{ProtocolVersion: wire.ProtocolVersion, SDKName: []byte("rust-sdk"), SDKVersion: []byte("0.11.0")}.Append(nil)
	login = wire.LoginRequest{Username: []byte(rootName), Password: []byte(rootPassword)}.Append(login)
	reply, err := wire.DecodeLoginReply(numbering.call(wire.OpRegister, 0, login).body)
	if err != nil {
		t.Fatal(err)
	}
	numbering.session = reply.Session
	for _, request := range []uint64{1, 2, 1, 3, 2} {
		numbering.request = request
		numbering.ok(numbering.call(wire.OpSendMessages, 0, body))
	}
	if got, want := w.parts.numbers(), []uint64{1, 2, 1, 2, 1, 4, 2}; !slices.Equal(got, want) {
		t.Errorf("numbers %v, want %v", got, want)
	}
}

// A topic goes on counting what its removed partitions held, until it is purged.
func TestCountsOfRemovedPartitions(t *testing.T) {
	w := start(t, nil)
	c := w.root(t)
	c.topic("s", "t", 2)
	for p := range uint32(2) {
		c.ok(c.call(wire.OpSendMessages, 0, sendBody(t, "s", "t", wire.Partitioning{Kind: wire.PartitioningPartition, Partition: p}, "m")))
	}
	topic := wire.TopicTarget{Stream: wire.NamedID("s"), Topic: wire.NamedID("t")}
	messages := func() uint64 {
		t.Helper()
		details, err := wire.DecodeTopicDetails(c.ok(c.read(wire.CmdGetTopic, topic.Append(nil))))
		if err != nil {
			t.Fatal(err)
		}
		return details.MessagesCount
	}
	remove := wire.PartitionsRequest{Stream: wire.NamedID("s"), Topic: wire.NamedID("t"), Count: 1}.Append(nil)
	c.ok(c.call(wire.OpDeletePartitions, 0, remove))
	if n := messages(); n != 2 {
		t.Errorf("%d messages after the removal, want 2", n)
	}
	c.request--
	c.ok(c.call(wire.OpDeletePartitions, 0, remove)) // the cached reply of the same request
	if n := messages(); n != 2 {
		t.Errorf("%d messages after a repeat, want 2", n)
	}
	c.ok(c.call(wire.OpPurgeTopic, 0, topic.Append(nil)))
	if n := messages(); n != 0 {
		t.Errorf("%d messages after the purge, want 0", n)
	}
}
