package frontdoor

import (
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
)

// autoCommit is the body of a poll of a consumer with auto-commit.
func autoCommit(consumer wire.Consumer) []byte {
	return wire.PollMessagesRequest{
		Consumer: consumer, Stream: wire.NamedID("s"), Topic: wire.NamedID("t"), Partition: wire.SelectPartition(0),
		Strategy: wire.Strategy{Kind: wire.StrategyNext}, Count: 10, AutoCommit: true,
	}.Append(nil)
}

// A client of the routed path polls for the session that asked, as the member that session is.
func TestRoutedPath(t *testing.T) {
	w := start(t, nil)
	c := w.root(t)
	c.topic("s", "t", 1)
	c.ok(c.call(wire.OpSendMessages, 0, sendBody(t, "s", "t", wire.Partitioning{Kind: wire.PartitioningPartition}, "a", "b")))
	stream, topic, group := wire.NamedID("s"), wire.NamedID("t"), wire.NamedID("g")
	c.ok(c.call(wire.OpCreateGroup, 0, wire.CreateGroupRequest{Stream: stream, Topic: topic, Name: []byte("g")}.Append(nil)))
	c.ok(c.call(wire.OpJoinGroup, 0, wire.GroupTarget{Stream: stream, Topic: topic, Group: group}.Append(nil)))
	member := wire.Consumer{Kind: wire.ConsumerGroup, ID: group}
	poll := autoCommit(member)

	way, err := wire.DecodePollRouting(c.ok(c.read(wire.CmdGetPollRouting, poll)))
	if err != nil || way.Client != c.id || way.Session != c.session || way.Watermark < c.session {
		t.Fatalf("%+v, %v", way, err)
	}
	roster, err := wire.DecodeClusterMetadata(c.ok(c.read(wire.CmdGetClusterMetadata, nil)))
	if err != nil || way.Primary != roster.Nodes[0] {
		t.Fatalf("%+v is not in %+v", way.Primary, roster)
	}

	d := w.root(t)
	if a := d.read(wire.CmdRoutedPoll, poll); a.Status != wire.CodeUnauthenticated {
		t.Errorf("before it is attached: %v", a.Status)
	}
	d.ok(d.read(wire.CmdAttachSession, way.AttachSession.Append(nil)))
	h, batches, err := wire.DecodePoll(d.ok(d.read(wire.CmdRoutedPoll, poll)))
	if err != nil || h.MessagesCount != 2 || len(batches) == 0 {
		t.Fatalf("%+v, %v", h, err)
	}
	if h, _, err = wire.DecodePoll(d.ok(d.read(wire.CmdPollMessages, poll))); err != nil || h.Partition == wire.PartitionResync {
		t.Errorf("a plain poll of the data connection: %+v, %v", h, err)
	}
	store := wire.StoreOffsetRequest{OffsetTarget: wire.OffsetTarget{Consumer: member, Stream: stream, Topic: topic, Partition: wire.SelectPartition(0)}, Offset: 1}.Append(nil)
	c.ok(c.read(wire.CmdGetOffsetRouting, store))
	d.ok(d.call(wire.OpStoreOffset, 0, store))

	c.ok(c.call(wire.OpLogout, 0, nil))
	if a := d.read(wire.CmdRoutedPoll, poll); a.Status != wire.CodeStaleClient {
		t.Errorf("poll after the end of the session: %v", a.Status)
	}
	if a := d.call(wire.OpStoreOffset, 0, store); a.Status != wire.CodeStaleClient {
		t.Errorf("store after the end of the session: %v", a.Status)
	}
}

func TestRoutedPathRefusals(t *testing.T) {
	w := start(t, nil)
	c := w.root(t)
	c.topic("s", "t", 1)
	self := wire.Consumer{Kind: wire.ConsumerSingle, ID: wire.NumericID(1)}
	own := wire.AttachSession{Client: c.id, Session: c.session}
	with := func(change func(*wire.AttachSession)) []byte {
		a := own
		change(&a)
		return a.Append(nil)
	}
	elsewhere := wire.OffsetTarget{Consumer: self, Stream: wire.NamedID("s"), Topic: wire.NamedID("t"), Partition: wire.SelectPartition(7)}
	for name, refusal := range map[string]struct {
		code wire.Cmd
		body []byte
		want wire.Code
	}{
		"no auto-commit":    {wire.CmdGetPollRouting, pollBody("s", "t", self, wire.SelectPartition(0)), wire.CodeInvalidCommand},
		"no stream":         {wire.CmdGetOffsetRouting, wire.OffsetTarget{Consumer: self, Stream: wire.NamedID("x"), Topic: wire.NamedID("t")}.Append(nil), wire.CodeStreamIdNotFound},
		"no partition":      {wire.CmdGetOffsetRouting, elsewhere.Append(nil), wire.CodePartitionNotFound},
		"no session":        {wire.CmdAttachSession, with(func(a *wire.AttachSession) { a.Session-- }), wire.CodeStaleClient},
		"nobody's client":   {wire.CmdAttachSession, with(func(a *wire.AttachSession) { a.Client.Hi = 77 }), wire.CodeStaleClient},
		"a far watermark":   {wire.CmdAttachSession, with(func(a *wire.AttachSession) { a.Watermark = 1 << 40 }), wire.CodeTransientNotAccepted},
		"half an attach":    {wire.CmdAttachSession, own.Append(nil)[:20], wire.CodeInvalidCommand},
		"not attached":      {wire.CmdRoutedPoll, autoCommit(self), wire.CodeUnauthenticated},
		"no body to decode": {wire.CmdGetOffsetRouting, nil, wire.CodeInvalidCommand},
	} {
		if a := c.read(refusal.code, refusal.body); a.Status != refusal.want {
			t.Errorf("%s: %v, want %v", name, a.Status, refusal.want)
		}
	}
}
