package link

import (
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/whippet-mq/whippet/libs/wire"
)

// intruder gets through handshake and introduction as a node and then writes what it likes.
func intruder(t *testing.T, address string, id, expect uint8, lane Lane) net.Conn {
	t.Helper()
	o, _ := testOptions(t, id)
	o.fill()
	conn, _, err := o.dial(t.Context(), address, expect, lane)
	if err != nil {
		t.Fatal(err)
	}
	conn.SetDeadline(time.Now().Add(patience))
	t.Cleanup(func() { conn.Close() })
	return conn
}

func headerWith(command wire.Command, size uint32) []byte {
	var h wire.HandshakeHeader
	h.Preamble = wire.Preamble{Cluster: testCluster, Command: command, Size: size}
	b := make([]byte, wire.HeaderSize)
	h.Put(b)
	if sealed(command) {
		wire.Seal(b)
	}
	return b
}

// TestReplicaPlaneRules: who holds the secret can still send nothing that is not of the plane. Each of these
// ends the connection and is counted.
func TestReplicaPlaneRules(t *testing.T) {
	victim := newMember(t, 9, nil)
	victim.mesh.SetPeers(map[uint8]string{1: ""})
	refused := victim.mesh.cfg.Metrics.refused.WithLabelValues(planeReplica, refusedFrame)
	for name, frame := range map[string][]byte{
		"a client's request":    headerWith(wire.CommandRequest, 256),
		"a reply":               headerWith(wire.CommandReply, 256),
		"an eviction":           headerWith(wire.CommandEviction, 256),
		"a second hello":        headerWith(wire.CommandReplicaHello, 256),
		"reserved":              headerWith(wire.CommandReserved, 256),
		"a client's ping":       headerWith(wire.CommandPingClient, 256),
		"an unknown command":    headerWith(30, 256),
		"a size below a header": headerWith(wire.CommandCommit, 255),
		"a size without end":    headerWith(wire.CommandPrepare, 1<<32-1),
		"just above the limit":  headerWith(wire.CommandPrepare, wire.MaxFrameSize+1),
	} {
		before := testutil.ToFloat64(refused)
		conn := intruder(t, victim.address, 1, 9, Control)
		_, _ = conn.Write(frame)
		closedBy(t, conn)
		until(t, name+" is counted", func() bool { return testutil.ToFloat64(refused) == before+1 })
	}
	if len(victim.frames) > 0 {
		t.Error("some of it was received")
	}
	if victim.pool.Used() != 0 {
		t.Errorf("%d bytes held", victim.pool.Used())
	}
}

// TestServicePlaneRules: the same for frames of the replica plane on the service port.
func TestServicePlaneRules(t *testing.T) {
	p := newServer(t, serviceFunc(func(c *Call) { c.Finish() }), nil)
	refused := p.server.cfg.Metrics.refused.WithLabelValues(planeService, refusedFrame)
	for c := wire.CommandReserved; c <= 30; c++ {
		if askingFrames.has(c) {
			continue
		}
		before := testutil.ToFloat64(refused)
		conn := intruder(t, p.address, 255, 3, 0)
		_, _ = conn.Write(headerWith(c, 256))
		closedBy(t, conn)
		until(t, c.String()+" is counted", func() bool { return testutil.ToFloat64(refused) == before+1 })
	}
}

// TestClientOnReplicaPort: a client's first frame is refused as the reference does, and logged once a second
// however often it comes.
func TestClientOnReplicaPort(t *testing.T) {
	victim := newMember(t, 9, nil)
	request := make([]byte, wire.HeaderSize)
	(&wire.RequestHeader{Cluster: testCluster, Size: 256, Client: wire.U128{Lo: 1}, Operation: wire.OpRegister}).Put(request)
	for range 20 {
		conn, err := net.Dial("tcp", victim.address)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write(request)
		var h wire.HandshakeHeader
		if err := h.Decode(closedBy(t, conn)); err != nil || h.Status != wire.HandshakeUnknownCommand {
			t.Errorf("answer %v, status %d", err, h.Status)
		}
		conn.Close()
	}
	until(t, "all are counted", func() bool {
		return testutil.ToFloat64(victim.mesh.cfg.Metrics.refused.WithLabelValues(planeReplica, refusedCommand)) == 20
	})
	if n := victim.log.count("connection refused"); n < 1 || n > 10 {
		t.Errorf("logged %d times", n)
	}
}

// TestImpersonation: an id that the handshake does not allow, and an introduction that says another one.
func TestImpersonation(t *testing.T) {
	victim := newMember(t, 9, nil)
	victim.mesh.SetPeers(map[uint8]string{1: ""})
	for _, id := range []uint8{2, 9, 10, 255} {
		o, _ := testOptions(t, id)
		o.fill()
		if conn, _, err := o.dial(t.Context(), victim.address, 9, Control); label(err) != refusedDirection {
			t.Errorf("node %d: %v, %v", id, conn, err)
		}
	}
	conn, err := net.Dial("tcp", victim.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s := &shaker{conn: conn, self: &Node{Cluster: testCluster, ID: 1}, secret: mustSecret(t, testSecret, ""), nonce: freshNonce}
	if _, err := s.dial(9); err != nil {
		t.Fatal(err)
	}
	_, err = (&introduction{conn: conn, self: &Node{Cluster: testCluster, ID: 2}}).open(9)
	if err != nil {
		t.Fatal(err)
	}
	closedBy(t, conn)
	until(t, "the lie is counted", func() bool {
		return testutil.ToFloat64(victim.mesh.cfg.Metrics.refused.WithLabelValues(planeReplica, refusedIdentity)) == 1
	})

	first := intruder(t, victim.address, 1, 9, Control)
	attached(t, victim, 1, Control)
	o, _ := testOptions(t, 1)
	o.fill()
	o.Node.UUID.Lo++
	second, _, err := o.dial(t.Context(), victim.address, 9, Control)
	if err != nil {
		t.Fatal(err)
	}
	closedBy(t, second)
	_, _ = first.Write(commitFrame(3)[:])
	if got := within(t, "frame of the first process", victim.frames); got.from != 1 {
		t.Errorf("frame of node %d", got.from)
	}
}

// attached waits until a node's lane is in use: its dialing side knows earlier.
func attached(t *testing.T, victim *member, node uint8, at Lane) {
	t.Helper()
	until(t, "lane in use", func() bool { return victim.mesh.peers[node].Load().lanes[at].Load() != nil })
}

// TestForeignLanes: a data lane belongs to the process of the control lane.
func TestForeignLanes(t *testing.T) {
	victim := newMember(t, 9, nil)
	victim.mesh.SetPeers(map[uint8]string{1: ""})
	closedBy(t, intruder(t, victim.address, 1, 9, Data(0))) // there is none
	control := intruder(t, victim.address, 1, 9, Control)
	attached(t, victim, 1, Control)
	closedBy(t, intruder(t, victim.address, 1, 9, Data(5))) // the pair has two
	for name, change := range map[string]func(*Node){
		"another life":    func(n *Node) { n.Epoch++ },
		"another process": func(n *Node) { n.UUID.Lo++ },
	} {
		o, _ := testOptions(t, 1)
		o.fill()
		change(o.Node)
		conn, _, err := o.dial(t.Context(), victim.address, 9, Data(0))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		closedBy(t, conn)
	}
	intruder(t, victim.address, 1, 9, Data(0))
	intruder(t, victim.address, 1, 9, Data(1))
	if p := within(t, "up", victim.up); p.ID != 1 {
		t.Errorf("%+v is up", p)
	}
	control.Close()
	within(t, "down", victim.down)
}

// TestWrongSeal: it costs the frame and not the connection, and what stands behind it arrives.
func TestWrongSeal(t *testing.T) {
	victim := newMember(t, 9, nil)
	victim.mesh.SetPeers(map[uint8]string{1: ""})
	conn := intruder(t, victim.address, 1, 9, Control)
	broken := commitFrame(1)
	broken[200]++
	large := headerWith(wire.CommandStateChunk, 256+100_000)
	large[200]++
	_, _ = conn.Write(broken[:])
	_, _ = conn.Write(large)
	_, _ = conn.Write(make([]byte, 100_000))
	_, _ = conn.Write(commitFrame(2)[:])
	if got := within(t, "good frame", victim.frames); got.head != *commitFrame(2) {
		t.Errorf("a %v arrived", got.head.Command())
	}
	if n := testutil.ToFloat64(victim.mesh.control.seal); n != 2 {
		t.Errorf("%v wrong seals counted", n)
	}
}

// TestHalfFrames: what was begun must be finished; until then no more than the budget is promised.
func TestHalfFrames(t *testing.T) {
	victim := newMember(t, 9, func(c *MeshConfig) { c.patience = 100 * time.Millisecond })
	victim.mesh.SetPeers(map[uint8]string{1: ""})
	whole := prepareFrame(1, 1000)
	for _, n := range []int{1, 255, 256, 700} {
		conn := intruder(t, victim.address, 1, 9, Control)
		_, _ = conn.Write(append(whole[:], make([]byte, 1000)...)[:n])
		closedBy(t, conn)
	}
	until(t, "buffers are released", func() bool { return victim.pool.Used() == 0 })
	if len(victim.frames) > 0 {
		t.Error("half a frame arrived")
	}
}

// TestOverBudget: a frame for which there is no buffer is thrown away as it comes, and the connection goes on.
func TestOverBudget(t *testing.T) {
	victim := newMember(t, 9, func(c *MeshConfig) { c.BudgetWait = time.Millisecond })
	victim.mesh.SetPeers(map[uint8]string{1: ""})
	held, ok := victim.pool.Try(int(victim.pool.Budget() / 2))
	if !ok {
		t.Fatal("no buffer")
	}
	rest, ok := victim.pool.Try(64 << 20)
	if !ok {
		t.Fatal("no buffer")
	}
	conn := intruder(t, victim.address, 1, 9, Control)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	body := make([]byte, 40<<20)
	for range 3 {
		_, _ = conn.Write(prepareFrame(1, len(body))[:])
		_, _ = conn.Write(body)
	}
	_, _ = conn.Write(commitFrame(2)[:])
	if got := within(t, "next frame", victim.frames); got.head != *commitFrame(2) {
		t.Errorf("a %v arrived", got.head.Command())
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 50<<20 { // the test's own body is 40 MiB of it
		t.Errorf("%d bytes allocated", n)
	}
	if n := testutil.ToFloat64(victim.mesh.control.budget); n != 3 {
		t.Errorf("%v frames counted", n)
	}
	held.Release()
	rest.Release()
}

// TestSilenceBeforeHandshake: who says nothing is closed after the grace, and the number of those who have
// not said anything yet is bounded.
func TestSilenceBeforeHandshake(t *testing.T) {
	patient := newMember(t, 9, nil)
	hasty := newMember(t, 8, func(c *MeshConfig) { c.Grace = 50 * time.Millisecond })
	conn, err := net.Dial("tcp", hasty.address)
	if err != nil {
		t.Fatal(err)
	}
	closedBy(t, conn)

	var silent []net.Conn
	for range maxHandshakes {
		c, err := net.Dial("tcp", patient.address)
		if err != nil {
			t.Fatal(err)
		}
		silent = append(silent, c)
	}
	until(t, "all tokens are taken", func() bool { return len(patient.mesh.shaking) == maxHandshakes })
	conn, err = net.Dial("tcp", patient.address)
	if err != nil {
		t.Fatal(err)
	}
	closedBy(t, conn)
	for _, c := range silent {
		c.Close()
	}
	until(t, "the tokens are back", func() bool { return len(patient.mesh.shaking) == 0 })
}

// TestRequestOverBudget: the requester is told.
func TestRequestOverBudget(t *testing.T) {
	p := newServer(t, serviceFunc(func(c *Call) { c.Finish() }), func(c *ServerConfig) { c.BudgetWait = time.Millisecond })
	p.dial(t, nil)
	held, _ := p.pool.Try(int(p.pool.Budget() / 2))
	rest, _ := p.pool.Try(64 << 20)
	c := sampleCall()
	c.Body = make([]byte, 33<<20)
	if ask(t, p.remote, c); c.Status != wire.CodeTransientNotAccepted || c.Reason != ReasonBudget {
		t.Errorf("status %v, reason %d", c.Status, c.Reason)
	}
	held.Release()
	rest.Release()
	c.Reset()
	c.Body = make([]byte, 10<<20)
	if ask(t, p.remote, c); c.Status != 0 {
		t.Errorf("status %v, reason %d", c.Status, c.Reason)
	}
}

// TestBadAnswers: a server that answers what was not asked, or nonsense, reaches no call; nonsense ends the
// connection.
func TestBadAnswers(t *testing.T) {
	conns := make(chan net.Conn, 10)
	o, _ := testOptions(t, 3)
	p := &plane{up: make(chan Peer, 10), down: make(chan Peer, 10)}
	p.address = serve(t, func(l net.Listener) error {
		for {
			conn, err := l.Accept()
			if err != nil {
				return nil
			}
			if _, _, _, err := o.admit2(conn); err == nil {
				conns <- conn
			}
		}
	})
	p.dial(t, nil)
	reply := func(number uint64, flags byte) []byte {
		var b wire.Header
		putAnswer(b[:], &Call{ReplyOp: wire.OpSendMessages}, 0, number)
		b[150] = flags
		return b[:]
	}
	eviction := func(number uint64, reason byte) []byte {
		var b wire.Header
		putAnswer(b[:], &Call{Evict: wire.EvictNoSession}, 0, number)
		b[255] = reason
		return b[:]
	}
	conn := within(t, "connection", conns)
	c := sampleCall()
	p.remote.Serve(c)
	for _, frame := range [][]byte{reply(0, 0), reply(1<<32|7, 0), reply(2<<32, 0), eviction(1<<40, 1), commitFrame(1)[:]} {
		_, _ = conn.Write(frame)
	}
	until(t, "what was not asked is counted", func() bool { return testutil.ToFloat64(p.remote.count.unasked) == 5 })
	if len(c.Done()) > 0 {
		t.Fatal("the call ended")
	}
	for name, frame := range map[string][]byte{"unknown flags": reply(1<<32, 0xff), "an eviction without reason": eviction(1<<32, 0), "a request": headerWith(wire.CommandRequest, 256)} {
		_, _ = conn.Write(frame)
		within(t, "end of the connection after "+name, p.down)
		conn.Close()
		conn = within(t, "next connection", conns)
	}
	within(t, "end of the call", c.Done())
	if c.Status != wire.CodeTransientNotCommitted {
		t.Errorf("status %v", c.Status)
	}
}
