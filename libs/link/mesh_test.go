package link

import (
	"bytes"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/whippet-mq/whippet/libs/wire"
)

// TestMeshDelivers: frames of all kinds arrive as they were sent, on their lane, from whom they came.
func TestMeshDelivers(t *testing.T) {
	a, b := newMember(t, 1, nil), newMember(t, 4, nil)
	meet(a, b)
	if p := within(t, "up at the lower", a.up); p.ID != 4 || p.UUID != b.node.UUID || p.Epoch != 7 || p.Loops != 2 || p.ServiceAddress != "somewhere:1" || p.Build != b.node.Build {
		t.Errorf("the lower id knows %+v", p)
	}
	if p := within(t, "up at the higher", b.up); p.ID != 1 || p.UUID != a.node.UUID {
		t.Errorf("the higher id knows %+v", p)
	}
	large := bytes.Repeat([]byte("0123456789abcdef"), 100_000)
	for _, way := range []struct{ from, to *member }{{a, b}, {b, a}} {
		owner, _ := way.from.pool.Try(len(large))
		copy(owner.Bytes(), large)
		for _, c := range []struct {
			lane Lane
			head *wire.Header
			body []byte
		}{
			{Control, commitFrame(9), nil},
			{Data(0), prepareFrame(1, 100), large[:100]},
			{Data(1), prepareFrame(2, len(large)), large},
			{Data(1), prepareFrame(3, 0), nil},
		} {
			if !way.from.mesh.Send(way.to.node.ID, c.lane, c.head, c.body, nil) {
				t.Fatalf("not sent on lane %d", c.lane)
			}
			got := within(t, "frame", way.to.frames)
			if got.from != way.from.node.ID || got.lane != c.lane || got.head != *c.head || !bytes.Equal(got.body, c.body) {
				t.Errorf("arrived from %d on lane %d with %d bytes, want from %d on %d with %d", got.from, got.lane, len(got.body), way.from.node.ID, c.lane, len(c.body))
			}
		}
		if !way.from.mesh.Send(way.to.node.ID, Data(0), prepareFrame(4, len(large)), owner.Bytes(), owner) {
			t.Fatal("borrowed body not sent")
		}
		owner.Release()
		if got := within(t, "borrowed body", way.to.frames); !bytes.Equal(got.body, large) {
			t.Error("a borrowed body changed on the way")
		}
	}
	if _, ok := a.mesh.Peer(4); !ok {
		t.Error("not a connected peer")
	}
	until(t, "all buffers released", func() bool { return a.pool.Used() == 0 && b.pool.Used() == 0 })
}

// TestMeshNobodyThere: sending to who is not connected is refused at once.
func TestMeshNobodyThere(t *testing.T) {
	a := newMember(t, 1, nil)
	a.mesh.SetPeers(map[uint8]string{2: "127.0.0.1:1"})
	for _, node := range []uint8{2, 3, 255} {
		if a.mesh.Send(node, Control, commitFrame(1), nil, nil) {
			t.Errorf("sent to node %d", node)
		}
	}
	until(t, "it is tried again", func() bool {
		return testutil.ToFloat64(a.mesh.cfg.Metrics.failed.WithLabelValues(planeReplica)) > 3
	})
	if n := a.log.count("cannot connect to node"); n != 1 {
		t.Errorf("the reason is logged %d times", n)
	}
}

// TestMeshReconnects: a lost control lane ends the pair's life, a lost data lane is made again, and a
// node that is removed is let go.
func TestMeshReconnects(t *testing.T) {
	a, b := newMember(t, 1, nil), newMember(t, 2, nil)
	meet(a, b)
	within(t, "up", a.up)
	within(t, "up", b.up)

	a.mesh.peers[2].Load().lanes[Data(1)].Load().close()
	until(t, "the data lane is back", func() bool { return a.mesh.Send(2, Data(1), prepareFrame(1, 0), nil, nil) })
	until(t, "a frame on it arrives", func() bool {
		a.mesh.Send(2, Data(1), prepareFrame(1, 0), nil, nil)
		return len(b.frames) > 0
	})
	if len(a.down)+len(b.down) != 0 {
		t.Error("a lost data lane counts as a lost node")
	}

	b.mesh.peers[1].Load().lanes[Control].Load().close()
	within(t, "down at the lower", a.down)
	within(t, "down at the higher", b.down)
	within(t, "up again", a.up)
	within(t, "up again", b.up)

	b.mesh.SetPeers(nil)
	within(t, "down after removal", a.down)
	within(t, "down after removal", b.down)
	if b.mesh.Send(1, Control, commitFrame(1), nil, nil) {
		t.Error("sent to a removed node")
	}
	until(t, "a removed node's dials are refused", func() bool { return b.log.count("directional_rule") > 0 })
}

// TestMeshManyLoops: loops beyond what a set of 64 can tell share lanes.
func TestMeshManyLoops(t *testing.T) {
	a := newMember(t, 1, func(c *MeshConfig) { c.Node.Loops = 200 })
	b := newMember(t, 2, nil)
	meet(a, b)
	if p := within(t, "up", b.up); p.Loops != wire.MaxLoops {
		t.Errorf("%d loops", p.Loops)
	}
	within(t, "up", a.up)
	for _, loop := range []uint8{0, 63, 64, 199, 255} {
		if !b.mesh.Send(1, Data(loop), prepareFrame(uint64(loop), 0), nil, nil) {
			t.Errorf("not sent to loop %d", loop)
		}
		within(t, "frame", a.frames)
	}
}

// TestMeshRestart: a restarted process takes the place of its former life.
func TestMeshRestart(t *testing.T) {
	a, b := newMember(t, 1, nil), newMember(t, 2, nil)
	meet(a, b)
	within(t, "up", b.up)
	a.mesh.Close()
	within(t, "down", b.down)
	again := newMember(t, 1, func(c *MeshConfig) { c.Node.Epoch = 8 })
	meet(again, b)
	if p := within(t, "up again", b.up); p.Epoch != 8 {
		t.Errorf("epoch %d of the new life", p.Epoch)
	}
}

// TestMeshMixed: reference rules have one connection and no Ping.
func TestMeshMixed(t *testing.T) {
	mixed := func(c *MeshConfig) { c.Node.Mixed = true }
	a, b := newMember(t, 1, mixed), newMember(t, 2, mixed)
	meet(a, b)
	if p := within(t, "up", b.up); p.ID != 1 || !p.UUID.IsZero() {
		t.Errorf("a mixed peer knows %+v", p)
	}
	within(t, "up", a.up)
	if !a.mesh.Send(2, Data(5), prepareFrame(1, 3), []byte("abc"), nil) {
		t.Fatal("not sent")
	}
	if got := within(t, "frame", b.frames); got.lane != Control || string(got.body) != "abc" {
		t.Errorf("lane %d, body %q", got.lane, got.body)
	}
}

// TestMeshModes: a native and a mixed node refuse each other and say why, once.
func TestMeshModes(t *testing.T) {
	a := newMember(t, 1, nil)
	b := newMember(t, 2, func(c *MeshConfig) { c.Node.Mixed = true })
	meet(a, b)
	until(t, "the setting is named", func() bool { return a.log.count("WHIPPET_CLUSTER_MIXED=true") == 1 })
}

// TestMeshClusterUUID: two clusters of one name stay apart.
func TestMeshClusterUUID(t *testing.T) {
	a, b, c := newMember(t, 1, nil), newMember(t, 2, nil), newMember(t, 3, nil)
	a.node.SetClusterUUID(wire.U128{Lo: 1})
	b.node.SetClusterUUID(wire.U128{Lo: 2})
	meet(a, b, c)
	until(t, "the lower says so", func() bool { return a.log.count("another cluster of the same name") == 1 })
	until(t, "the higher says so", func() bool { return b.log.count("another cluster of the same name") > 0 })
	for range 2 { // one that knows no uuid yet meets both
		if p := within(t, "up", c.up); p.ClusterUUID.IsZero() {
			t.Error("a peer without the uuid it has")
		}
	}
	if _, ok := a.mesh.Peer(2); ok {
		t.Error("met all the same")
	}
}
