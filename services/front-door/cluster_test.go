package frontdoor

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/routing"
	"github.com/whippet-mq/whippet/libs/wire"
)

// lagging is a follower that shows what it is let see of a metadata group.
type lagging struct {
	meta *fakeMetadata

	mu      sync.Mutex
	view    *metadata.View
	held    bool
	changed chan struct{}
	stale   atomic.Bool
}

func newLagging(meta *fakeMetadata) *lagging {
	return &lagging{meta: meta, view: meta.View(), changed: make(chan struct{})}
}

// hold keeps the view as it is until the next release.
func (l *lagging) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = true
}

func (l *lagging) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = false
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *lagging) View() *metadata.View {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.held {
		l.view = l.meta.View()
	}
	return l.view
}

func (l *lagging) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// Wait lets the view go on when it has to: the feed is slow, not broken.
func (l *lagging) Wait(op uint64, _ time.Duration) bool {
	if l.View().Op < op {
		l.release()
	}
	return l.View().Op >= op
}

func (l *lagging) Fresh() bool { return !l.stale.Load() }

// node is one process of the cluster behind a front-door. Who does not lead says what it knows.
type node struct {
	service link.Service

	mu      sync.Mutex
	refuse  func(c *link.Call) bool
	asked   int
	indexes int
	within  uint32 // Deadline of the last call
}

func (n *node) Serve(c *link.Call) {
	n.mu.Lock()
	n.asked++
	if c.Internal == link.InternalReadIndex {
		n.indexes++
	}
	n.within = c.Deadline
	refuse := n.refuse
	n.mu.Unlock()
	if refuse != nil && refuse(c) {
		c.Finish()
		return
	}
	n.service.Serve(c)
}

func (n *node) refusing(with func(c *link.Call) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refuse = with
}

func (n *node) calls() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked
}

// limit is how long, in milliseconds, the last answer was allowed to take; 0: for ever.
func (n *node) limit() uint32 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.within
}

func (n *node) readIndexes() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.indexes
}

// notPrimary refuses everything and names the view it knows.
func notPrimary(view uint32) func(*link.Call) bool {
	return func(c *link.Call) bool {
		c.Status, c.Reason, c.View = wire.CodeTransientNotAccepted, link.ReasonNotPrimary, view
		return true
	}
}

// unreachable is how a link answers for a process that is gone.
func unreachable(code wire.Code) func(*link.Call) bool {
	return func(c *link.Call) bool {
		c.Status, c.Reason = code, link.ReasonUnreachable
		return true
	}
}

// cluster is a front-door in front of three metadata replicas, nodes 1 to 3, and three partition
// replicas, nodes 11 to 13, which host everything.
type cluster struct {
	*world
	follower *lagging
	nodes    map[uint8]*node
}

// indexing answers read-indexes over a metadata service.
type indexing struct{ *fakeMetadata }

func (m indexing) Serve(c *link.Call) {
	if c.Internal == link.InternalReadIndex {
		c.Op = m.View().Op
		c.Finish()
		return
	}
	m.fakeMetadata.Serve(c)
}

func startCluster(t *testing.T, change func(*Config)) *cluster {
	t.Helper()
	cfg := Config{Address: "127.0.0.1:0", ClusterID: wire.U128{Lo: 7}}
	if change != nil {
		change(&cfg)
	}
	c := &cluster{world: &world{meta: newFakeMetadata(), pool: buffer.NewPool(64 << 20)}, nodes: make(map[uint8]*node)}
	c.parts = &fakePartitions{pool: c.pool, logs: make(map[uint64]*fakeLog)}
	c.follower = newLagging(c.meta)
	for id := range uint8(3) {
		c.nodes[id+1], c.nodes[id+11] = &node{service: indexing{c.meta}}, &node{service: c.parts}
	}
	for _, id := range []uint8{2, 3} {
		c.nodes[id].refusing(notPrimary(0))
	}
	router := routing.New(routing.Config{
		View: c.follower.View, Metadata: []byte{1, 2, 3}, Roster: []byte{11, 12, 13},
		Dial: func(id uint8) link.Service { return c.nodes[id] },
	})
	server, err := New(cfg, Deps{Router: router, Follower: c.follower, Pool: c.pool})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	c.Server = server
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := server.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return c
}

var toPartition0 = wire.Partitioning{Kind: wire.PartitioningPartition}

// The primary of a group is found from the view that a refusal names, and remembered.
func TestRouterFollowsTheView(t *testing.T) {
	w := startCluster(t, nil)
	c := w.root(t)
	c.topic("s", "t", 1)
	for _, id := range []uint8{11, 12} {
		w.nodes[id].refusing(notPrimary(5)) // member 5 mod 3
	}
	c.ok(c.call(wire.OpSendMessages, 0, sendBody(t, "s", "t", toPartition0, "m")))
	if a, b := w.nodes[11].calls(), w.nodes[12].calls(); a != 1 || b != 0 {
		t.Errorf("members 0 and 1 were asked %d and %d times", a, b)
	}
	c.ok(c.call(wire.OpSendMessages, 0, sendBody(t, "s", "t", toPartition0, "m")))
	if n := w.nodes[11].calls(); n != 1 {
		t.Errorf("member 0 was asked %d times although the view is known", n)
	}
}

// Members that are gone or know nothing newer are passed over in turn; a send whose outcome is open is
// repeated under its number.
func TestRouterTriesTheOthers(t *testing.T) {
	w := startCluster(t, nil)
	c := w.root(t)
	c.topic("s", "t", 1)
	w.nodes[11].refusing(unreachable(wire.CodeTransientNotCommitted))
	w.nodes[12].refusing(notPrimary(0))
	c.ok(c.call(wire.OpSendMessages, 0, sendBody(t, "s", "t", toPartition0, "m")))
	if n := w.nodes[13].calls(); n != 1 {
		t.Errorf("member 2 was asked %d times", n)
	}
	if limit := w.nodes[13].limit(); limit < answerLimit {
		t.Errorf("the answer may take %d ms", limit)
	}
	if numbers := w.parts.numbers(); len(numbers) != 1 || numbers[0] != 1 {
		t.Errorf("numbers %v", numbers)
	}
}

// The metadata primary moves: logins, changes and read-indexes find it.
func TestRouterFindsTheMetadataPrimary(t *testing.T) {
	w := startCluster(t, nil)
	w.nodes[1].refusing(unreachable(wire.CodeTransientNotAccepted))
	w.nodes[2].refusing(nil)
	c := w.root(t)
	c.topic("s", "t", 1)
	w.nodes[2].refusing(notPrimary(2))
	w.nodes[3].refusing(nil)
	if _, err := wire.DecodeTopicDetails(c.ok(c.read(wire.CmdGetTopic, wire.TopicTarget{Stream: wire.NamedID("s"), Topic: wire.NamedID("t")}.Append(nil)))); err != nil {
		t.Fatal(err)
	}
	if w.nodes[3].readIndexes() != 1 {
		t.Errorf("%d read-indexes at the new primary", w.nodes[3].readIndexes())
	}
}

// No definite "no" comes from a view that is behind: not for a topic, not for a login, not for an offset.
func TestNoIsNeverStale(t *testing.T) {
	w := startCluster(t, nil)
	c, admin := w.root(t), w.root(t)
	admin.topic("first", "t", 1)
	w.follower.hold()
	w.meta.create(t, "s", "t")
	c.ok(c.call(wire.OpSendMessages, 0, sendBody(t, "s", "t", toPartition0, "m")))
	if w.nodes[1].readIndexes() != 1 {
		t.Errorf("%d read-indexes for one unknown topic", w.nodes[1].readIndexes())
	}
	w.follower.hold()
	w.meta.createUser(t, "late", "password")
	w.dial(t).login("late", "password")
	w.follower.hold()
	w.meta.create(t, "s2", "t2")
	if streams := c.ok(c.read(wire.CmdGetStreams, nil)); len(streams) == 0 || w.follower.View().StreamCount() != 3 {
		t.Errorf("%d streams are shown", w.follower.View().StreamCount())
	}
}

// What does not exist is denied all the same, after one question that everybody who waits shares.
func TestNoIsSaid(t *testing.T) {
	w := startCluster(t, nil)
	c := w.root(t)
	before := w.nodes[1].readIndexes()
	if a := c.call(wire.OpSendMessages, 0, sendBody(t, "s", "t", toPartition0, "m")); a.Status != wire.CodeResourceNotFound {
		t.Errorf("status %v", a.Status)
	}
	if n := w.nodes[1].readIndexes() - before; n != 1 {
		t.Errorf("%d read-indexes", n)
	}
	if a := w.dial(t).call(wire.OpRegister, 0, loginBody("iggy", "wrong")); a.evicted != wire.EvictInvalidCredentials {
		t.Errorf("eviction %v", a.evicted)
	}
	body := wire.OffsetTarget{
		Consumer: wire.Consumer{Kind: wire.ConsumerSingle, ID: wire.NumericID(1)}, Stream: wire.NamedID("s"), Topic: wire.NamedID("t"),
	}.Append(nil)
	before = w.nodes[1].readIndexes()
	if got := c.ok(c.read(wire.CmdGetOffset, body)); len(got) != 0 || w.nodes[1].readIndexes() != before+1 {
		t.Errorf("%d bytes after %d read-indexes", len(got), w.nodes[1].readIndexes()-before)
	}
}

// Without a metadata primary nothing is denied: the client is told to try again.
func TestNoIsNotGuessed(t *testing.T) {
	w := startCluster(t, func(c *Config) { c.RetryFor = 50 * time.Millisecond })
	c := w.root(t)
	for _, id := range []uint8{1, 2, 3} {
		w.nodes[id].refusing(notPrimary(0))
	}
	if a := c.call(wire.OpSendMessages, 0, sendBody(t, "s", "t", toPartition0, "m")); a.Status != wire.CodeTransientNotAccepted {
		t.Errorf("send: %v", a.Status)
	}
	if a := c.read(wire.CmdGetStreams, nil); a.Status != wire.CodeTransientNotAccepted {
		t.Errorf("streams: %v", a.Status)
	}
}

// Nothing is authorized from a view nobody vouches for.
func TestStaleViewAuthorizesNothing(t *testing.T) {
	w := startCluster(t, func(c *Config) { c.RetryFor = 50 * time.Millisecond })
	c := w.root(t)
	c.topic("s", "t", 1)
	w.follower.stale.Store(true)
	if a := c.call(wire.OpSendMessages, 0, sendBody(t, "s", "t", toPartition0, "m")); a.Status != wire.CodeTransientNotAccepted {
		t.Errorf("send: %v", a.Status)
	}
	if a := w.dial(t).call(wire.OpRegister, 0, loginBody(rootName, rootPassword)); a.evicted != 0 || a.result() != wire.CodeTransientNotAccepted {
		t.Errorf("login: eviction %v, result %v", a.evicted, a.result())
	}
	c.ok(c.read(wire.CmdPing, nil))
}

// Requests wait for a view that somebody vouches for.
func TestStaleViewIsWaitedFor(t *testing.T) {
	w := startCluster(t, nil)
	w.follower.stale.Store(true)
	late := w.dial(t)
	body := loginBody(rootName, rootPassword)
	late.write(frameOf(late.header(wire.OpRegister, 0, body), body))
	w.follower.stale.Store(false)
	if a := late.next(); a.Status != 0 || a.evicted != 0 {
		t.Errorf("login after the view is fresh: %v %v", a.Status, a.evicted)
	}
}

// A replica that knows newer metadata and not the group says so: the front-door catches up and resolves
// again, at once.
func TestReplicaIsAhead(t *testing.T) {
	w := startCluster(t, nil)
	c := w.root(t)
	c.topic("s", "t", 1)
	w.follower.hold()
	old, _, _ := w.meta.View().PartitionByGroupID(wire.GroupID(0, 0, 0, 0))
	w.meta.recreate(t, "s", "t")
	for _, id := range []uint8{11, 12, 13} {
		w.nodes[id].refusing(func(call *link.Call) bool {
			if _, _, ok := w.meta.View().PartitionByGroupID(call.Group); ok {
				return false
			}
			call.Status, call.Reason, call.MetadataOp = wire.CodeTransientNotAccepted, link.ReasonUnknownGroup, w.meta.View().Op
			return true
		})
	}
	c.ok(c.call(wire.OpSendMessages, 0, sendBody(t, "s", "t", toPartition0, "m")))
	if n := w.nodes[11].calls(); n != 2 || old == nil {
		t.Errorf("the partition was asked %d times", n)
	}
}

// Of many logins at once only as many are with the metadata primary as it has room for.
func TestLoginsTakeTurns(t *testing.T) {
	w := startCluster(t, nil)
	w.root(t) // the password is known from here on
	var now, most atomic.Int64
	var once sync.Once
	full := make(chan struct{})
	w.nodes[1].refusing(func(c *link.Call) bool {
		if c.Header.Operation != wire.OpRegister {
			return false
		}
		n := now.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if n == maxEntering {
			time.AfterFunc(50*time.Millisecond, func() { once.Do(func() { close(full) }) }) // more of them would be here by then
		}
		select {
		case <-full:
		case <-time.After(10 * time.Second):
			t.Error("too few come at once")
		}
		now.Add(-1)
		return false
	})
	var all sync.WaitGroup
	for range 2*maxEntering - 1 {
		c := w.dial(t)
		all.Go(func() {
			if a := c.call(wire.OpRegister, 0, loginBody(rootName, rootPassword)); a.evicted != 0 || a.Status != 0 {
				t.Errorf("login: eviction %v, status %v", a.evicted, a.Status)
			}
		})
	}
	all.Wait()
	if n := most.Load(); n != maxEntering {
		t.Errorf("%d logins at once", n)
	}
}

// TestSendWaitsForItsTopicOnly: a partition primary that is behind in the metadata takes sends to a topic that
// has not changed since, so a slow feed of one node does not hold up what has nothing to do with it.
func TestSendWaitsForItsTopicOnly(t *testing.T) {
	w := startCluster(t, nil)
	c := w.root(t)
	c.topic("s", "t", 1)
	made := w.meta.View().Op
	var asked atomic.Uint64
	for _, n := range w.nodes {
		n.refusing(func(c *link.Call) bool { asked.Store(c.MetadataOp); return false })
	}
	send := func() uint64 {
		t.Helper()
		c.ok(c.call(wire.OpSendMessages, 0, sendBody(t, "s", "t", toPartition0, "m")))
		return asked.Load()
	}
	first := send()
	w.meta.create(t, "other", "t")
	if again := send(); first < made || again != first || w.meta.View().Op <= first {
		t.Errorf("sends ask for op %d, then %d; the topic was made at %d", first, again, made)
	}
	w.meta.createTopic(t, "s", "t2")
	w.meta.commit(t, wire.PrepareHeader{Operation: wire.OpPurgeTopic}, wire.TopicTarget{Stream: wire.NamedID("s"), Topic: wire.NamedID("t")}.Append(nil))
	if op := send(); op != w.meta.View().Op {
		t.Errorf("after a purge at %d a send asks for op %d", w.meta.View().Op, op)
	}
}

// A purge is answered once the primaries of its partitions know of it: a send through another front-door, which
// may not know of it yet, would be taken in front of it and go with it.
func TestPurgeIsKnownWhenAnswered(t *testing.T) {
	w := startCluster(t, nil)
	c := w.root(t)
	c.topic("s", "t", 3)
	var told atomic.Uint64
	for _, id := range []uint8{11, 12, 13} {
		w.nodes[id].refusing(func(c *link.Call) bool {
			if c.Internal == link.InternalFacts {
				told.Store(c.MetadataOp)
			}
			return false
		})
	}
	c.ok(c.call(wire.OpPurgeTopic, 0, wire.TopicTarget{Stream: wire.NamedID("s"), Topic: wire.NamedID("t")}.Append(nil)))
	if told.Load() != w.meta.View().Op {
		t.Errorf("purged at op %d, the partitions were told of %d", w.meta.View().Op, told.Load())
	}
	told.Store(0)
	c.ok(c.call(wire.OpPurgeStream, 0, wire.StreamTarget{Stream: wire.NamedID("s")}.Append(nil)))
	if told.Load() != w.meta.View().Op {
		t.Errorf("purged at op %d, the partitions were told of %d", w.meta.View().Op, told.Load())
	}
}

// A login of the same client elsewhere ends its session here.
func TestLoginElsewhere(t *testing.T) {
	w := startCluster(t, nil)
	c := w.root(t)
	c.topic("s", "t", 1)
	w.meta.commit(t, wire.PrepareHeader{Operation: wire.OpRegister, Client: c.id}, nil)
	if a := c.call(wire.OpSendMessages, 0, sendBody(t, "s", "t", toPartition0, "m")); a.evicted != wire.EvictSessionTooLow {
		t.Errorf("eviction %v, status %v", a.evicted, a.Status)
	}
}

// commit applies an op that came through another front-door.
func (m *fakeMetadata) commit(t *testing.T, h wire.PrepareHeader, body []byte) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.view.Load()
	h.Op, h.Timestamp, h.Group = v.Op+1, v.Time+1, wire.MetadataGroup
	next, reply := v.Apply(&h, body)
	if reply.Code != 0 {
		t.Fatalf("%v: %v", h.Operation, reply.Code)
	}
	m.view.Store(next)
}

func (m *fakeMetadata) create(t *testing.T, stream, topic string) {
	t.Helper()
	m.commit(t, wire.PrepareHeader{Operation: wire.OpCreateStream}, wire.CreateStreamRequest{Name: []byte(stream)}.Append(nil))
	m.createTopic(t, stream, topic)
}

func (m *fakeMetadata) createTopic(t *testing.T, stream, topic string) {
	t.Helper()
	op, body, code := m.View().Admit(nil, &metadata.Request{
		Operation: wire.OpCreateTopic,
		Body:      wire.CreateTopicRequest{Stream: wire.NamedID(stream), PartitionsCount: 1, Name: []byte(topic)}.Append(nil),
	})
	if code != 0 {
		t.Fatal(code)
	}
	m.commit(t, wire.PrepareHeader{Operation: op}, body)
}

func (m *fakeMetadata) recreate(t *testing.T, stream, topic string) {
	t.Helper()
	m.commit(t, wire.PrepareHeader{Operation: wire.OpDeleteTopic}, wire.TopicTarget{Stream: wire.NamedID(stream), Topic: wire.NamedID(topic)}.Append(nil))
	m.createTopic(t, stream, topic)
}

func (m *fakeMetadata) createUser(t *testing.T, name, password string) {
	t.Helper()
	body := wire.CreateUserRequest{Username: []byte(name), Password: []byte(password), Status: wire.UserActive}.Append(nil)
	m.commit(t, wire.PrepareHeader{Operation: wire.OpCreateUser}, metadata.LogCreateUser(nil, body, HashPassword([]byte(password))))
}

// Other protocols are not told a stale "no" either, and their users' sessions are claimed.
func TestLocalInACluster(t *testing.T) {
	w := startCluster(t, nil)
	local := w.Local()
	w.follower.hold()
	w.meta.createUser(t, "late", "password")
	user, code := local.Password([]byte("late"), []byte("password"))
	if code != 0 {
		t.Fatal(code)
	}
	if _, code := local.Password([]byte("late"), []byte("wrong")); code != wire.CodeInvalidCredentials {
		t.Errorf("a wrong password: %v", code)
	}
	w.follower.hold()
	w.meta.createUser(t, "later", "password")
	if u, code := local.User(user + 1); u == nil || code != 0 {
		t.Errorf("%v %v", u, code)
	}
	if u, code := local.User(user + 2); u != nil || code != 0 {
		t.Errorf("%v %v for nobody", u, code)
	}
	write := local.Write(0, wire.OpCreateStream, wire.CreateStreamRequest{Name: []byte("s")}.Append(nil))
	if write.Release(); write.Status != 0 {
		t.Fatal(write.Status)
	}
	held := w.core.clients.held()
	if local.hold(held); len(held) != 1 {
		t.Errorf("%d sessions are held", len(held))
	}
	local.Logout(0)
	clear(held)
	if local.hold(held); len(held) != 0 {
		t.Errorf("%d sessions are held after the logout", len(held))
	}
	w.follower.stale.Store(true)
	if _, code := local.Token("any", time.Now()); code != wire.CodeTransientNotAccepted {
		t.Errorf("a token under a view nobody vouches for: %v", code)
	}
}
