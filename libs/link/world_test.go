package link

import (
	"bytes"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/wire"
)

const (
	testSecret  = "test-shared-secret-0123456789abcdef"
	otherSecret = "other-shared-secret-0123456789abcde"
	patience    = 20 * time.Second // far beyond what anything here takes on a busy machine
)

var testCluster = wire.ClusterID("testers")

func mustSecret(t testing.TB, current, previous string) *Secret {
	t.Helper()
	s, err := NewSecret(current, previous)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// arrived is one frame that a member was handed.
type arrived struct {
	from uint8
	lane Lane
	head wire.Header
	body []byte
}

// member is one node of a test with its mesh.
type member struct {
	t       testing.TB
	node    *Node
	mesh    *Mesh
	pool    *buffer.Pool
	log     *logBook
	address string
	frames  chan arrived
	up      chan Peer
	down    chan Peer
}

// logBook keeps what was logged.
type logBook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBook) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logBook) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.text.Bytes(), []byte(text))
}

func testOptions(t testing.TB, id uint8) (Options, *logBook) {
	book := &logBook{}
	return Options{
		Node:   &Node{Cluster: testCluster, UUID: wire.U128{Lo: uint64(id) + 1, Hi: 1}, ID: id, Epoch: 7, Loops: 2, Build: wire.PackVersion(1, 2, 3), ServiceAddress: "somewhere:1"},
		Secret: mustSecret(t, testSecret, ""),
		Pool:   buffer.NewPool(256 << 20),
		Log:    hclog.New(&hclog.LoggerOptions{Output: book, Level: hclog.Debug}),
	}, book
}

func newMember(t testing.TB, id uint8, change func(*MeshConfig)) *member {
	t.Helper()
	o, book := testOptions(t, id)
	m := &member{t: t, node: o.Node, pool: o.Pool, log: book, frames: make(chan arrived, 10000), up: make(chan Peer, 100), down: make(chan Peer, 100)}
	cfg := MeshConfig{Options: o, Receive: m.receive, Up: func(p Peer) { m.up <- p }, Down: func(p Peer) { m.down <- p }}
	if change != nil {
		change(&cfg)
	}
	m.mesh = NewMesh(cfg)
	t.Cleanup(func() { m.mesh.Close() })
	m.address = serve(t, m.mesh.Serve)
	return m
}

// serve runs an accepting function on a free loopback port and returns its address.
func serve(t testing.TB, accept func(net.Listener) error) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- accept(l) }()
	t.Cleanup(func() {
		l.Close()
		if err := <-done; err != nil {
			t.Errorf("listener: %v", err)
		}
	})
	return l.Addr().String()
}

func (m *member) receive(from uint8, lane Lane, h *wire.Header, f *buffer.Frame) {
	a := arrived{from: from, lane: lane, head: *h}
	if f != nil {
		a.body = slices.Clone(f.Bytes()[wire.HeaderSize:])
		f.Release()
	}
	m.frames <- a
}

// meet makes members peers of each other.
func meet(members ...*member) {
	for _, m := range members {
		peers := map[uint8]string{}
		for _, other := range members {
			peers[other.node.ID] = other.address
		}
		m.mesh.SetPeers(peers)
	}
}

func within[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("no %s", what)
		panic("unreachable")
	}
}

// until waits for a condition that no channel tells of.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
		pauseBriefly()
	}
}

func pauseBriefly() { <-time.After(time.Millisecond) }

// commitFrame is a sealed frame without body, told apart by its commit number.
func commitFrame(n uint64) *wire.Header {
	var h wire.Header
	(&wire.CommitHeader{Preamble: wire.Preamble{Cluster: testCluster}, Commit: n}).Put(h[:])
	return &h
}

// prepareFrame is the header of a prepare with a body of n bytes.
func prepareFrame(op uint64, n int) *wire.Header {
	var h wire.Header
	p := wire.PrepareHeader{Cluster: testCluster, Size: uint32(wire.HeaderSize + n), Command: wire.CommandPrepare, Op: op, Operation: wire.OpSendMessages, Group: 1}
	p.Checksum = p.Identity()
	p.Put(h[:])
	return &h
}

// closedBy waits until the other side has closed conn, and returns what it sent before.
func closedBy(t testing.TB, conn net.Conn) []byte {
	t.Helper()
	conn.SetReadDeadline(time.Now().Add(patience))
	b, err := io.ReadAll(conn)
	if ne, ok := err.(net.Error); ok && ne.Timeout() {
		t.Fatal("the connection stays open")
	}
	return b
}
