package feed

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/wire"
)

var cluster = wire.ClusterID("feed")

// group is a metadata log with the sources that have applied it.
type group struct {
	t       *testing.T
	mu      sync.Mutex
	view    *metadata.View
	parent  wire.U128
	sources map[uint8]*replica
}

// replica is one source and how much of the log it has applied.
type replica struct {
	*Source
	mu       sync.Mutex
	view     *metadata.View
	isolated bool
}

func newGroup(t *testing.T, nodes ...uint8) *group {
	g := &group{t: t, sources: make(map[uint8]*replica)}
	g.view = metadata.New(metadata.RootUser{Name: "iggy", PasswordHash: "none"}, metadata.Limits{})
	for _, node := range nodes {
		r := &replica{view: g.view}
		r.Source = NewSource(cluster, r.current, func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return !r.isolated
		})
		g.sources[node] = r
	}
	return g
}

func (r *replica) current() *metadata.View {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.view
}

func (r *replica) show(v *metadata.View) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.view = v
}

func (r *replica) isolate(isolated bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isolated = isolated
}

// createStream commits one op and has the given nodes apply it.
func (g *group) createStream(name string, nodes ...uint8) {
	g.mu.Lock()
	defer g.mu.Unlock()
	body := wire.CreateStreamRequest{Name: []byte(name)}.Append(nil)
	h := wire.PrepareHeader{
		Command: wire.CommandPrepare, Cluster: cluster, Size: uint32(wire.HeaderSize + len(body)), Parent: g.parent,
		ChecksumBody: wire.SealBody(body), Op: g.view.Op + 1, Timestamp: g.view.Time + 1, Operation: wire.OpCreateStream,
		Group: wire.MetadataGroup,
	}
	h.Checksum = h.Identity()
	g.parent = h.Checksum
	g.view, _ = g.view.Apply(&h, body)
	for _, node := range nodes {
		r := g.sources[node]
		r.Add(&h, body)
		r.show(g.view)
		r.Publish()
	}
}

// network connects a client to the sources of a group. Frames arrive one after the other per node.
type network struct {
	g      *group
	client *Client

	mu    sync.Mutex
	links map[uint8]*pipe
	asked map[wire.Command]int
	nodes map[uint8]int
}

// pipe is one connection. A full one takes nothing.
type pipe struct {
	node     uint8
	follower *Follower
	frames   chan [2][]byte
	down     chan struct{}
}

func (p *pipe) Send(header, body []byte) bool {
	select {
	case p.frames <- [2][]byte{bytes.Clone(header), body}:
		return true
	default:
		return false
	}
}

func follow(g *group, seed uint64, nodes ...uint8) *network {
	n := &network{g: g, links: make(map[uint8]*pipe), asked: make(map[wire.Command]int), nodes: make(map[uint8]int)}
	n.client = NewClient(ClientConfig{Cluster: cluster, Sources: nodes, Seed: seed, Ask: n.ask})
	return n
}

// up connects to a node through a pipe of so many frames; 0 is one that nobody reads.
func (n *network) up(node uint8, room int) *pipe {
	p := &pipe{node: node, frames: make(chan [2][]byte, max(room, 1)), down: make(chan struct{})}
	p.follower = n.g.sources[node].Open(p)
	n.mu.Lock()
	n.links[node] = p
	n.mu.Unlock()
	n.client.Up(node)
	if room > 0 {
		go p.read(n.client)
	}
	return p
}

func (p *pipe) read(client *Client) {
	for {
		select {
		case f := <-p.frames:
			client.Frame(p.node, (*wire.Header)(f[0]), f[1], nil)
		case <-p.down:
			return
		}
	}
}

func (n *network) down(node uint8) {
	n.mu.Lock()
	p := n.links[node]
	delete(n.links, node)
	n.mu.Unlock()
	close(p.down)
	p.follower.Close()
	n.client.Down(node)
}

func (n *network) ask(node uint8, q *Request) bool {
	h := (*wire.Header)(q)
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.links[node]
	if p == nil {
		return false
	}
	n.asked[h.Command()]++
	n.nodes[node]++
	if err := request(p.follower, h); err != nil {
		n.g.t.Error(err)
	}
	return true
}

func (n *network) requests(c wire.Command) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked[c]
}

// asks is how many requests a node got.
func (n *network) asks(node uint8) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.nodes[node]
}

// request is what a connection does with a frame of a follower.
func request(f *Follower, b *wire.Header) error {
	switch b.Command() {
	case wire.CommandRequestPrepares:
		var q wire.RequestPreparesHeader
		if err := q.Decode(b[:]); err != nil {
			return err
		}
		return f.Subscribe(&q)
	case wire.CommandRequestStateTransfer:
		var q wire.RequestStateTransferHeader
		if err := q.Decode(b[:]); err != nil {
			return err
		}
		return f.Transfer(&q)
	default:
		var q wire.RequestStateChunkHeader
		if err := q.Decode(b[:]); err != nil {
			return err
		}
		return f.Chunk(&q)
	}
}

// beat lets every source send its beacons until done is closed.
func (g *group) beat(done <-chan struct{}) {
	tick := time.NewTicker(BeaconEvery)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			for _, r := range g.sources {
				r.Beat(now)
			}
		case <-done:
			return
		}
	}
}

// run is a test in a bubble with beating sources.
func run(t *testing.T, g *group, test func()) {
	t.Helper()
	done := make(chan struct{})
	go g.beat(done)
	test()
	close(done)
	synctest.Wait()
}

func (n *network) end() {
	n.mu.Lock()
	nodes := make([]uint8, 0, len(n.links))
	for node := range n.links {
		nodes = append(nodes, node)
	}
	n.mu.Unlock()
	for _, node := range nodes {
		n.down(node)
	}
	n.client.Close()
}

// A client has a view once a source is up, sees every op, and takes up where it was after its
// connection broke, at another source too.
func TestClientFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 1, 2, 3)
		run(t, g, func() {
			g.createStream("before", 1, 2, 3)
			n := follow(g, 4, 1, 2, 3) // 4 mod 3: node 2 is tried first
			defer n.end()
			n.up(1, 64)
			<-n.client.Ready()
			if !n.client.Fresh() {
				synctest.Wait()
			}
			n.up(2, 64)
			g.createStream("live", 1, 2, 3)
			if !n.client.Wait(2, time.Second) || n.client.View().StreamCount() != 2 || !n.client.Fresh() {
				t.Fatalf("op %d, fresh %v", n.client.View().Op, n.client.Fresh())
			}
			n.down(1)
			g.createStream("elsewhere", 2)
			if !n.client.Wait(3, time.Second) {
				t.Fatalf("op %d", n.client.View().Op)
			}
			if got := n.requests(wire.CommandRequestStateTransfer); got != 1 {
				t.Errorf("%d state transfers", got)
			}
		})
	})
}

// The seed says which source is the first choice, so that followers spread.
func TestClientsSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 1, 2, 3)
		run(t, g, func() {
			for seed, want := range []uint8{1, 2, 3} {
				n := follow(g, uint64(seed), 1, 2, 3)
				for _, node := range []uint8{3, 1, 2} {
					n.up(node, 64)
				}
				<-n.client.Ready()
				if n.asks(want) == 0 || n.asks(1)+n.asks(2)+n.asks(3) != n.asks(want) {
					t.Errorf("seed %d asked %d %d %d times", seed, n.asks(1), n.asks(2), n.asks(3))
				}
				n.end()
			}
		})
	})
}

// A source that does not know what is committed does not vouch for the view: another one is taken, and
// without one the view is no longer fresh after five seconds. It stays.
func TestClientOfAnIsolatedSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 1, 2)
		run(t, g, func() {
			n := follow(g, 0, 1, 2)
			defer n.end()
			n.up(1, 64)
			n.up(2, 64)
			<-n.client.Ready()
			g.sources[1].isolate(true)
			g.createStream("unseen", 2)
			if !n.client.Wait(1, 3*time.Second) || !n.client.Fresh() {
				t.Fatalf("op %d, fresh %v", n.client.View().Op, n.client.Fresh())
			}
			g.sources[2].isolate(true)
			time.Sleep(FreshFor - time.Second)
			if !n.client.Fresh() {
				t.Error("not fresh too early")
			}
			time.Sleep(2 * time.Second)
			if n.client.Fresh() || n.client.View().StreamCount() != 1 {
				t.Errorf("fresh %v with %d streams", n.client.Fresh(), n.client.View().StreamCount())
			}
			g.sources[1].isolate(false) // lacks the op: it vouches for less than the view, and for nothing newer
			g.sources[2].isolate(false)
			time.Sleep(3 * time.Second)
			if !n.client.Fresh() {
				t.Error("not fresh again")
			}
		})
	})
}

// A source that beats but does not bring what is known to be there is left for one that does.
func TestClientOfASourceThatIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 1, 2)
		run(t, g, func() {
			n := follow(g, 0, 1, 2)
			defer n.end()
			n.up(1, 64)
			n.up(2, 64)
			<-n.client.Ready()
			g.createStream("elsewhere", 2)
			if !n.client.Wait(1, 500*time.Millisecond) {
				t.Errorf("op %d after half a second", n.client.View().Op)
			}
		})
	})
}

// A follower that does not read costs its place only; when the ops it needs are gone it starts anew.
func TestSlowFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 1)
		run(t, g, func() {
			n := follow(g, 0, 1)
			defer n.end()
			p := n.up(1, 8)
			<-n.client.Ready()
			synctest.Wait()
			n.mu.Lock()
			close(p.down) // the reader stops
			p.down = make(chan struct{})
			n.mu.Unlock()
			synctest.Wait()
			for i := range recentOps + 8 {
				g.createStream(fmt.Sprint("s", i), 1)
			}
			if held := len(g.sources[1].recent.ring); held != recentOps {
				t.Fatalf("%d frames held", held)
			}
			go p.read(n.client)
			if !n.client.Wait(recentOps+8, 10*time.Second) {
				t.Fatalf("op %d", n.client.View().Op)
			}
			if got := n.requests(wire.CommandRequestStateTransfer); got < 2 {
				t.Errorf("%d state transfers", got)
			}
		})
	})
}

// Followers of one time share one snapshot, and nobody keeps it when it is not asked for.
func TestOffersAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 1)
		run(t, g, func() {
			s := g.sources[1].Source
			g.createStream("a", 1)
			a := follow(g, 0, 1)
			defer a.end()
			a.up(1, 64)
			<-a.client.Ready()
			first := s.newest()
			g.createStream("b", 1)
			b := follow(g, 0, 1)
			defer b.end()
			b.up(1, 64)
			<-b.client.Ready()
			if s.newest() != first {
				t.Error("a second snapshot was built")
			}
			if !b.client.Wait(2, time.Second) {
				t.Error("the second follower misses what came after the snapshot")
			}
			time.Sleep(2 * offerIdle)
			s.building.Lock()
			defer s.building.Unlock()
			if s.offer != nil {
				t.Error("an idle snapshot is kept")
			}
		})
	})
}

// A source that has just started says nothing about ops it has no frames of: its first beacon names
// the op it restarted at.
func TestSourceAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 1)
		run(t, g, func() {
			n := follow(g, 0, 1)
			defer n.end()
			n.up(1, 64)
			<-n.client.Ready()
			n.down(1)
			g.createStream("missed", 1)
			r := g.sources[1]
			r.Source = NewSource(cluster, r.current, nil)
			n.up(1, 64)
			if !n.client.Wait(1, time.Second) {
				t.Fatalf("op %d", n.client.View().Op)
			}
		})
	})
}

// A source that was given a newer state by another member has its followers take it too, although it never
// applied the ops in between.
func TestSourceThatIsGivenAState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 1)
		run(t, g, func() {
			n := follow(g, 0, 1)
			defer n.end()
			n.up(1, 64)
			<-n.client.Ready()
			g.createStream("applied", 1)
			g.createStream("not applied")
			g.sources[1].show(g.view)
			g.sources[1].Publish()
			time.Sleep(time.Second)
			if v := n.client.View(); v.Op != 2 || !n.client.Fresh() {
				t.Fatalf("op %d, vouched for: %v", v.Op, n.client.Fresh())
			}
			g.createStream("goes on", 1)
			if !n.client.Wait(3, time.Second) {
				t.Fatalf("op %d", n.client.View().Op)
			}
		})
	})
}

// Requests that no follower makes are refused.
func TestSourceRefuses(t *testing.T) {
	g := newGroup(t, 1)
	f := g.sources[1].Open(&pipe{frames: make(chan [2][]byte, 8)})
	if err := f.Subscribe(&wire.RequestPreparesHeader{FromOp: 1, ToOp: 9, Group: wire.MetadataGroup}); err == nil {
		t.Error("a range is served as a subscription")
	}
	if err := f.Subscribe(&wire.RequestPreparesHeader{FromOp: 1, ToOp: ^uint64(0), Group: 1}); err == nil {
		t.Error("a partition's group is served")
	}
	if err := f.Transfer(&wire.RequestStateTransferHeader{Group: 1}); err == nil {
		t.Error("a partition's state is offered")
	}
	if err := f.Chunk(&wire.RequestStateChunkHeader{Len: 1}); err != nil {
		t.Errorf("a chunk of a transfer that was given up: %v", err)
	}
	if err := f.Transfer(&wire.RequestStateTransferHeader{Group: wire.MetadataGroup, Nonce: wire.U128{Lo: 1}}); err != nil {
		t.Fatal(err)
	}
	size := uint64(len(f.offer.bytes))
	for name, q := range map[string]wire.RequestStateChunkHeader{
		"beyond the end":   {Offset: size, Len: 1},
		"too long":         {Len: maxChunk + 1},
		"another artifact": {Len: 1, Artifact: 1},
		"overflow":         {Offset: ^uint64(0), Len: 2},
	} {
		q.Nonce = wire.U128{Lo: 1}
		if err := f.Chunk(&q); err == nil {
			t.Errorf("%s is served", name)
		}
	}
}
