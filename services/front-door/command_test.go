package frontdoor

import (
	"bytes"
	"crypto/tls"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
)

func TestBeforeLogin(t *testing.T) {
	w := start(t, nil)
	c := w.dial(t)
	c.ok(c.read(wire.CmdPing, nil))
	for _, code := range []wire.Cmd{wire.CmdGetStats, wire.CmdGetClusterMetadata, wire.CmdCreateStream, 60000, 0} {
		if a := c.read(code, nil); a.Status != wire.CodeUnauthenticated {
			t.Errorf("%v: %v", code, a.Status)
		}
	}
	c.session = 5
	for op := wire.OpCreateStream; op <= wire.OpDeleteOffset; op++ {
		if !op.Known() {
			continue
		}
		if a := c.call(op, 0, nil); a.evicted != wire.EvictNoSession {
			t.Errorf("%v: eviction %v status %v", op, a.evicted, a.Status)
		}
	}
	c.ok(c.call(wire.OpLogout, 0, nil))
	if a := c.read(wire.CmdLoginLegacy, nil); a.evicted != wire.EvictMalformedLogin {
		t.Errorf("legacy login: %v", a.evicted)
	}
}

func TestReadCodes(t *testing.T) {
	w := start(t, nil)
	c := w.root(t)
	for code, want := range map[wire.Cmd]wire.Code{
		60000: wire.CodeInvalidCommand, 0: wire.CodeInvalidCommand, 103: wire.CodeInvalidCommand,
		wire.CmdCreateStream: wire.CodeFeatureUnavailable, wire.CmdSendMessages: wire.CodeFeatureUnavailable,
		wire.CmdFlushBuffer: wire.CodeFeatureUnavailable, wire.CmdLogout: 0, wire.CmdTokenLogin: 0, wire.CmdPing: 0,
	} {
		if a := c.read(code, nil); a.Status != want || len(a.body) != 0 {
			t.Errorf("%v: status %v, %d bytes", code, a.Status, len(a.body))
		}
	}
	for _, op := range []wire.Operation{64, 65, 66, 67, 68} {
		c.request++
		if a := c.call(op, 0, nil); a.evicted != wire.EvictInvalidRequestOperation {
			t.Errorf("operation %d: %v", op, a.evicted)
		}
	}
	c.ok(c.read(wire.CmdGetMe, nil))
}

func TestSendAndPoll(t *testing.T) {
	w := start(t, nil)
	c := w.root(t)
	c.topic("s", "t", 3)
	partition := wire.Partitioning{Kind: wire.PartitioningPartition, Partition: 2}
	for i, want := range []uint64{0, 2} {
		confirmed, err := wire.DecodeConfirmations(c.ok(c.call(wire.OpSendMessages, 0, sendBody(t, "s", "t", partition, "a", "b"))))
		if err != nil || len(confirmed) != 1 || confirmed[0] != (wire.Confirmation{Partition: 2, BaseOffset: want}) {
			t.Fatalf("send %d: %+v %v", i, confirmed, err)
		}
	}
	self := wire.Consumer{Kind: wire.ConsumerSingle, ID: wire.NumericID(1)}
	h, batches, err := wire.DecodePoll(c.ok(c.read(wire.CmdPollMessages, pollBody("s", "t", self, wire.SelectPartition(2)))))
	if n, _ := wire.CountMessages(batches); err != nil || h.Partition != 2 || h.MessagesCount != 4 || n != 4 {
		t.Fatalf("poll: %+v, %d messages, %v", h, n, err)
	}
	details, err := wire.DecodeTopicDetails(c.ok(c.read(wire.CmdGetTopic, wire.TopicTarget{Stream: wire.NamedID("s"), Topic: wire.NamedID("t")}.Append(nil))))
	if err != nil || details.MessagesCount != 4 || details.Partitions[2].MessagesCount != 4 || details.Partitions[0].SegmentsCount != 1 {
		t.Fatalf("topic: %+v %v", details, err)
	}
	stats, err := wire.DecodeStats(c.ok(c.read(wire.CmdGetStats, nil)))
	if err != nil || stats.Messages != 4 || stats.Partitions != 3 || stats.Segments != 3 || stats.Clients != 1 {
		t.Fatalf("stats: %+v %v", stats, err)
	}
}

// Balanced sends walk the partitions, keys stay on theirs.
func TestServerChosenPartitions(t *testing.T) {
	w := start(t, nil)
	c, d := w.root(t), w.root(t)
	c.topic("s", "t", 3)
	var got []uint32
	for _, by := range []*client{c, d, c, c} { // the counter is the front-door's, not the connection's
		a := by.ok(by.call(wire.OpSendMessages, 0, sendBody(t, "s", "t", wire.Partitioning{Kind: wire.PartitioningBalanced}, "m")))
		confirmed, _ := wire.DecodeConfirmations(a)
		got = append(got, confirmed[0].Partition)
	}
	if want := []uint32{0, 1, 2, 0}; !bytes.Equal(asBytes(got), asBytes(want)) {
		t.Errorf("balanced: %v, want %v", got, want)
	}
	// XXH32("order-key-1") = 222290145, a multiple of three.
	a := c.ok(c.call(wire.OpSendMessages, 0, sendBody(t, "s", "t", wire.Partitioning{Kind: wire.PartitioningKey, Key: []byte("order-key-1")}, "m")))
	if confirmed, _ := wire.DecodeConfirmations(a); confirmed[0].Partition != 222290145%3 {
		t.Errorf("key: partition %d", confirmed[0].Partition)
	}
}

func asBytes(n []uint32) (b []byte) {
	for _, v := range n {
		b = append(b, byte(v))
	}
	return b
}

// What does not resolve is 20 for partition writes and a typed code for polls; rights come after the
// target and before the partition of a poll.
func TestTargets(t *testing.T) {
	w := start(t, nil)
	c := w.root(t)
	c.topic("s", "t", 1)
	c.ok(c.call(wire.OpCreateUser, 0, wire.CreateUserRequest{Username: []byte("nobody"), Password: []byte("secret"), Status: wire.UserActive}.Append(nil)))
	nobody := w.dial(t).login("nobody", "secret")
	first := wire.Partitioning{Kind: wire.PartitioningPartition}
	ninth := wire.Partitioning{Kind: wire.PartitioningPartition, Partition: 9}
	self := wire.Consumer{Kind: wire.ConsumerSingle, ID: wire.NumericID(1)}
	group := wire.Consumer{Kind: wire.ConsumerGroup, ID: wire.NamedID("g")}
	store := func(at wire.PartitionSelector, consumer wire.Consumer) []byte {
		return wire.StoreOffsetRequest{OffsetTarget: wire.OffsetTarget{Consumer: consumer, Stream: wire.NamedID("s"), Topic: wire.NamedID("t"), Partition: at}, Ack: 1}.Append(nil)
	}
	for _, k := range []struct {
		what string
		by   *client
		op   wire.Operation
		code wire.Cmd
		body []byte
		want wire.Code
	}{
		{"send, no stream", c, wire.OpSendMessages, 0, sendBody(t, "x", "t", first, "m"), wire.CodeResourceNotFound},
		{"send, no topic", c, wire.OpSendMessages, 0, sendBody(t, "s", "x", first, "m"), wire.CodeResourceNotFound},
		{"send, no partition", c, wire.OpSendMessages, 0, sendBody(t, "s", "t", ninth, "m"), wire.CodeResourceNotFound},
		{"send, no right", nobody, wire.OpSendMessages, 0, sendBody(t, "s", "t", first, "m"), wire.CodeUnauthorized},
		{"send, no partition, no right", nobody, wire.OpSendMessages, 0, sendBody(t, "s", "t", ninth, "m"), wire.CodeResourceNotFound},
		{"send, cut", c, wire.OpSendMessages, 0, sendBody(t, "s", "t", first, "m")[:9], wire.CodeResourceNotFound},
		{"send, stray byte", c, wire.OpSendMessages, 0, append(sendBody(t, "s", "t", first, "m"), 0), wire.CodeInvalidCommand},
		{"poll, no stream", c, wire.OpNonReplicated, wire.CmdPollMessages, pollBody("x", "t", self, wire.SelectPartition(0)), wire.CodeStreamIdNotFound},
		{"poll, no topic", c, wire.OpNonReplicated, wire.CmdPollMessages, pollBody("s", "x", self, wire.SelectPartition(0)), wire.CodeTopicIdNotFound},
		{"poll, no partition", c, wire.OpNonReplicated, wire.CmdPollMessages, pollBody("s", "t", self, wire.SelectPartition(9)), wire.CodePartitionNotFound},
		{"poll, no partition, no right", nobody, wire.OpNonReplicated, wire.CmdPollMessages, pollBody("s", "t", self, wire.SelectPartition(9)), wire.CodeUnauthorized},
		{"store, no partition given", c, wire.OpStoreOffset, 0, store(wire.PartitionSelector{}, self), wire.CodeResourceNotFound},
		{"store, not a member", c, wire.OpStoreOffset, 0, store(wire.SelectPartition(0), group), wire.CodeResourceNotFound},
		{"store, no right", nobody, wire.OpStoreOffset, 0, store(wire.SelectPartition(0), self), wire.CodeUnauthorized},
		{"store", c, wire.OpStoreOffset, 0, store(wire.SelectPartition(0), self), 0},
	} {
		if a := k.by.call(k.op, k.code, k.body); a.Status != k.want || a.evicted != 0 {
			t.Errorf("%s: status %v eviction %v, want %v", k.what, a.Status, a.evicted, k.want)
		}
	}
	flipped := sendBody(t, "s", "t", first, "m")
	flipped[len(flipped)-1] ^= 1
	if a := c.call(wire.OpSendMessages, 0, flipped); a.Status != wire.CodeInvalidMessageChecksum {
		t.Errorf("flipped payload: %v", a.Status)
	}
	if n := w.parts.stored(wire.GroupID(0, 0, 0, 0)); n != 0 {
		t.Errorf("%d messages were stored", n)
	}
}

// A group poll is answered only to the partition's owner; everybody else is told to sync.
func TestGroupPoll(t *testing.T) {
	w := start(t, nil)
	c, other := w.root(t), w.root(t)
	c.topic("s", "t", 1)
	c.ok(c.call(wire.OpSendMessages, 0, sendBody(t, "s", "t", wire.Partitioning{Kind: wire.PartitioningPartition}, "m")))
	c.ok(c.call(wire.OpCreateGroup, 0, wire.CreateGroupRequest{Stream: wire.NamedID("s"), Topic: wire.NamedID("t"), Name: []byte("g")}.Append(nil)))
	target := wire.GroupTarget{Stream: wire.NamedID("s"), Topic: wire.NamedID("t"), Group: wire.NamedID("g")}.Append(nil)
	c.ok(c.call(wire.OpJoinGroup, 0, target))
	group := wire.Consumer{Kind: wire.ConsumerGroup, ID: wire.NamedID("g")}
	poll := func(by *client, at wire.PartitionSelector) wire.PollHeader {
		h, _, err := wire.DecodePoll(by.ok(by.read(wire.CmdPollMessages, pollBody("s", "t", group, at))))
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	if h := poll(c, wire.SelectPartition(0)); h.MessagesCount != 1 {
		t.Errorf("owner: %+v", h)
	}
	if h := poll(other, wire.SelectPartition(0)); h != (wire.PollHeader{Partition: wire.PartitionResync}) {
		t.Errorf("stranger: %+v", h)
	}
	if h := poll(c, wire.PartitionSelector{}); h != (wire.PollHeader{}) {
		t.Errorf("no partition: %+v", h)
	}
	assignment, err := wire.DecodeGroupAssignment(c.ok(c.read(wire.CmdSyncGroup, target)))
	if err != nil || assignment.Generation != 1 || len(assignment.Partitions) != 1 {
		t.Errorf("sync: %+v %v", assignment, err)
	}
	if body := other.ok(other.read(wire.CmdSyncGroup, target)); len(body) != 0 {
		t.Errorf("sync of a stranger: %x", body)
	}
	me, err := wire.DecodeClientDetails(c.ok(c.read(wire.CmdGetMe, nil)))
	if err != nil || len(me.Groups) != 1 || me.Groups[0] != (wire.GroupMembership{}) {
		t.Errorf("me: %+v %v", me, err)
	}
}

func TestChangePassword(t *testing.T) {
	w := start(t, nil)
	c := w.root(t)
	change := func(current, next string) wire.Code {
		return c.call(wire.OpChangePassword, 0, wire.ChangePasswordRequest{User: wire.NumericID(0), Current: []byte(current), New: []byte(next)}.Append(nil)).result()
	}
	if got := change("wrong", "other"); got != wire.CodeInvalidCredentials {
		t.Errorf("wrong current password: %v", got)
	}
	if got := change(rootPassword, "other"); got != 0 {
		t.Errorf("right current password: %v", got)
	}
	if a := w.dial(t).call(wire.OpRegister, 0, loginBody(rootName, rootPassword)); a.evicted != wire.EvictInvalidCredentials {
		t.Errorf("the old password still works: %v", a.evicted)
	}
	w.dial(t).login(rootName, "other")
	if a := c.call(wire.OpChangePassword, 0, wire.ChangePasswordRequest{User: wire.NumericID(9)}.Append(nil)); a.result() != wire.CodeResourceNotFound {
		t.Errorf("unknown user: %v", a.result())
	}
}

func TestSnapshotArchive(t *testing.T) {
	w := start(t, func(c *Config) { c.DataDir = t.TempDir() })
	c := w.root(t)
	if body := c.ok(c.read(wire.CmdGetSnapshot, []byte{1, 1, 4})); !bytes.Contains(body, []byte("test.txt")) || !bytes.HasPrefix(body, []byte("PK")) {
		t.Errorf("archive of %d bytes", len(body))
	}
	if body := c.ok(c.read(wire.CmdGetSnapshot, []byte{2, 1, 100})); !bytes.Contains(body, []byte("resource_usage.txt")) || bytes.Contains(body, []byte("test.txt")) {
		t.Errorf("all sections: %d bytes", len(body))
	}
	w.core.archiving.Store(true)
	if a := c.read(wire.CmdGetSnapshot, []byte{1, 1, 4}); a.Status != wire.CodeSnapshotFileCompletionFailed {
		t.Errorf("a second one at the same time: %v", a.Status)
	}
}

func TestTLS(t *testing.T) {
	w := start(t, func(c *Config) { c.TLS = TLS{Enabled: true, SelfSigned: true} })
	sock, err := tls.Dial("tcp", w.Addr().String(), &tls.Config{InsecureSkipVerify: true, ServerName: "localhost"})
	if err != nil {
		t.Fatal(err)
	}
	defer sock.Close()
	if names := sock.ConnectionState().PeerCertificates[0].DNSNames; len(names) != 1 || names[0] != "localhost" {
		t.Errorf("certificate for %v", names)
	}
	newClient(t, sock).login(rootName, rootPassword)
}
