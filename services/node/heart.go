package node

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/control"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/vsr/pulse"
	"github.com/whippet-mq/whippet/libs/wire"
)

// watchEvery is about how often groups led here look whether enough members still answer: along with the pings,
// so that an idle process wakes once for both.
const watchEvery = 100 * time.Millisecond

// heart drives the pulse of this process: pings to the other nodes and their pings here, and what
// follows from them for the loops.
type heart struct {
	node *node
	stop chan struct{}
	gone sync.WaitGroup

	mu    sync.Mutex
	pulse *pulse.Pulse
	out   pulse.Output
	body  wire.PingBody
	frame []byte

	turns []atomic.Uint64 // per loop of the partitions: turns since the start
	count []uint64
}

// newHeart is made before the loops are: they count once they run.
func (n *node) newHeart() *heart {
	h := &heart{node: n, stop: make(chan struct{})}
	h.pulse = pulse.New(pulse.Options{
		Header: wire.PingHeader{
			Preamble: wire.Preamble{Cluster: n.cluster.node.Cluster}, NodeUUID: n.cluster.node.UUID,
			Epoch: n.cluster.node.Epoch, Node: n.cluster.self, Build: n.cluster.node.Build,
		},
		Started: now(), Agree: n.agree(),
	})
	return h
}

// agree is how many other nodes must not hear a node either before it is dead: those that with this one
// can change a view of the groups they share.
func (n *node) agree() int {
	members := len(n.cluster.metadata)
	if !n.roles.Metadata {
		members = n.config.Node.ReplicationFactor
	}
	return vsr.QuorumsOf(members).ViewChange - 1
}

func now() pulse.Tick { return pulse.Tick(loop.Ticks()) }

// beat pings until close.
func (h *heart) beat() {
	engines := h.node.engines()
	h.turns, h.count = make([]atomic.Uint64, len(engines)), make([]uint64, len(engines))
	h.setPeers()
	h.gone.Add(1)
	go func() {
		defer h.gone.Done()
		wake := time.NewTimer(0)
		defer wake.Stop()
		var watched time.Time
		for {
			select {
			case <-h.stop:
				return
			case <-wake.C:
			}
			if time.Since(watched) > watchEvery*3/4 {
				watched = time.Now()
				for i, e := range engines {
					e.Do(func() { h.turns[i].Add(1); e.Loop.Watch() })
				}
			}
			wake.Reset(h.tick())
		}
	}()
}

func (h *heart) close() {
	close(h.stop)
	h.gone.Wait()
}

// setPeers tells the pulse which nodes there are.
func (h *heart) setPeers() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.step(pulse.Input{Kind: pulse.InputPeers, Peers: slices.Sorted(maps.Keys(h.node.cluster.others()))})
}

// tick lets time pass and returns how long until it should again, at most watchEvery.
func (h *heart) tick() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.step(pulse.Input{Kind: pulse.InputTick})
	if h.out.Wake == 0 {
		return watchEvery
	}
	return min(watchEvery, time.Duration(max(1, int64(h.out.Wake)-int64(now())))*time.Microsecond)
}

// up lets a node that is connected hear of this one at once.
func (h *heart) up(node uint8) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.step(pulse.Input{Kind: pulse.InputUp, From: node})
}

// receive takes a Ping or Pong; the frame stays the caller's.
func (h *heart) receive(from uint8, header *wire.Header, f *buffer.Frame) {
	var ping wire.PingHeader
	if ping.Decode(header[:]) != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var b []byte
	if f != nil {
		b = f.Bytes()[wire.HeaderSize:]
	}
	if h.body.Decode(&ping, b) != nil {
		return
	}
	in := pulse.Input{Kind: pulse.InputPing, From: from, Header: &ping, Body: &h.body}
	if ping.Command == wire.CommandPong {
		in.Kind = pulse.InputPong
	} else {
		h.node.echoes.Hear(from, vsr.Tick(now()))
	}
	h.step(in)
	if in.Kind == pulse.InputPong {
		at := vsr.Tick(h.pulse.Echo(from))
		h.node.echoes.Set(from, at)
		if view, ok := h.pulse.EchoView(from); ok {
			h.node.echoes.Pledge(from, at, view)
		}
	}
}

// step runs the pulse and carries out what comes of it. The caller holds h.mu.
func (h *heart) step(in pulse.Input) {
	for i := range h.count {
		h.count[i] = h.turns[i].Load()
	}
	in.Now, in.Progress = now(), h.count
	if g := h.node.metadataGroup(); g != nil {
		in.View, in.Follows = g.Follows()
	}
	h.pulse.Step(&in, &h.out)
	for i := range h.out.Send {
		s := &h.out.Send[i]
		s.Header.Wall = uint64(time.Now().UnixMicro())
		s.Body.Address = []byte(h.node.cluster.node.ServiceAddress)
		h.frame = wire.AppendPing(h.frame[:0], &s.Header, &s.Body)
		h.node.peers.mesh.Send(s.To, link.Control, (*wire.Header)(h.frame[:wire.HeaderSize]), h.frame[wire.HeaderSize:], nil)
	}
	for i := range h.out.Events {
		h.happened(&h.out.Events[i])
	}
}

// happened tells the loops what became known of a node. A loop that stands still takes its node's groups
// with it: they are led elsewhere until the whole node is well again.
func (h *heart) happened(e *pulse.Event) {
	switch e.Kind {
	case pulse.EventDead, pulse.EventLoopDead, pulse.EventNewEpoch:
		h.node.log.Info("node is not heard", "node", e.Node, "epoch", e.Epoch, "loop", e.Loop)
		if e.Kind == pulse.EventNewEpoch {
			h.node.sayNode(control.Restarted, e.Node)
		} else {
			h.node.sayNode(control.Silent, e.Node)
		}
		for _, engine := range h.node.engines() {
			engine.NodeDead(e.Node)
		}
	case pulse.EventAlive, pulse.EventLoopAlive:
		h.node.log.Info("node is heard", "node", e.Node, "epoch", e.Epoch)
		h.node.sayNode(control.Heard, e.Node)
		for _, engine := range h.node.engines() {
			engine.NodeAlive(e.Node)
		}
		view, _ := h.pulse.View(e.Node)
		h.viewed(e.Node, view)
	case pulse.EventView:
		h.viewed(e.Node, e.View)
	}
}

// viewed tells the metadata group in which view another member is.
func (h *heart) viewed(node uint8, view uint32) {
	g := h.node.metadataGroup()
	if g == nil {
		return
	}
	engine := h.node.metadata.Engine()
	engine.Do(func() { engine.Loop.PeerView(g, node, view) })
}

// metadataGroup is the metadata group of this process, nil before it is open or where there is none.
func (n *node) metadataGroup() *loop.Group {
	if n.metadata == nil {
		return nil
	}
	return n.metadata.Group()
}
