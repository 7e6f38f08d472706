package link

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/wire"
)

// peer is one other node and the connections to it.
type peer struct {
	mesh   *Mesh
	id     uint8
	where  whereabouts
	ctx    context.Context // ends when the peer is removed
	cancel context.CancelFunc

	lanes [wire.MaxLoops + 1]atomic.Pointer[stream] // nil: not connected
	shown atomic.Pointer[Peer]                      // between up and down

	mu      sync.Mutex
	removed bool
	who     Peer // of the control lane's process
	width   int  // lanes the pair has
	problem problem
}

func newPeer(m *Mesh, id uint8) *peer {
	p := &peer{mesh: m, id: id}
	p.ctx, p.cancel = context.WithCancel(m.ctx)
	return p
}

// remove disconnects the node for good.
func (p *peer) remove() {
	p.mu.Lock()
	p.removed = true
	p.mu.Unlock()
	p.cancel()
	p.each((*stream).close)
}

// drain is remove that lets queued frames go out; wait waits for that.
func (p *peer) drain() {
	p.mu.Lock()
	p.removed = true
	p.mu.Unlock()
	p.each(func(s *stream) { s.drain(closeGrace) })
}

func (p *peer) wait() {
	p.each(func(s *stream) { <-s.done })
	p.cancel()
}

func (p *peer) each(do func(*stream)) {
	for i := range p.lanes {
		if s := p.lanes[i].Load(); s != nil {
			do(s)
		}
	}
}

// run makes an admitted connection one of the peer's lanes, serves it, and returns when it has ended.
// attached is called in between.
func (p *peer) run(conn net.Conn, who Peer, at Lane, attached func()) error {
	allowed := nativeFrames
	if p.mesh.cfg.Node.Mixed {
		allowed = mixedFrames
	}
	s := p.mesh.cfg.stream(conn, allowed, p.mesh.metrics(at))
	s.to = &laneReceiver{receive: p.mesh.cfg.Receive, from: p.id, lane: at}
	if err := p.attach(s, who, at); err != nil {
		s.close()
		return err
	}
	attached()
	gauge := p.mesh.cfg.Metrics.connections.WithLabelValues(planeReplica)
	gauge.Inc()
	defer gauge.Dec()
	return s.run(func() { p.detach(s, at) })
}

// attach enters a connection in the table. A control lane begins a new life of the pair: what was
// connected before is closed. A data lane must come from the process of the control lane.
func (p *peer) attach(s *stream, who Peer, at Lane) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.removed:
		return net.ErrClosed
	case at == Control && p.lanes[Control].Load() != nil && who.UUID != p.who.UUID:
		return refuse(refusedIdentity, "two processes claim to be node %d: uuid %s is connected, %s is refused",
			p.id, uuidText(p.who.UUID), uuidText(who.UUID))
	case at == Control:
		p.parted()
		p.who = who
		p.width = 1
		if !p.mesh.cfg.Node.Mixed {
			p.width += int(max(p.mesh.cfg.Node.loops(), who.Loops, 1))
		}
	case int(at) >= p.width || p.lanes[Control].Load() == nil || who.Epoch != p.who.Epoch || who.UUID != p.who.UUID:
		return refuse(refusedIdentity, "lane %s of node %d does not belong to its control lane", laneName(at), p.id)
	}
	if old := p.lanes[at].Swap(s); old != nil {
		old.close()
	}
	p.problem.solved()
	p.joined()
	return nil
}

// detach takes an ended connection out of the table.
func (p *peer) detach(s *stream, at Lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lanes[at].CompareAndSwap(s, nil) && at == Control {
		p.parted()
	}
}

// joined tells once that all lanes are there. p.mu is held.
func (p *peer) joined() {
	for i := range p.width {
		if p.lanes[i].Load() == nil {
			return
		}
	}
	if p.shown.Load() != nil {
		return
	}
	who := p.who
	p.shown.Store(&who)
	p.mesh.cfg.Log.Debug("node connected", "node", p.id, "lanes", p.width)
	if p.mesh.cfg.Up != nil {
		p.mesh.cfg.Up(who)
	}
}

// parted closes the lanes of the life that has ended and tells of it. p.mu is held.
func (p *peer) parted() {
	for i := range p.lanes {
		if s := p.lanes[i].Swap(nil); s != nil {
			s.close()
		}
	}
	known := p.shown.Swap(nil)
	if known == nil {
		return
	}
	p.mesh.cfg.Log.Debug("node disconnected", "node", p.id)
	if p.mesh.cfg.Down != nil {
		p.mesh.cfg.Down(*known)
	}
}

// keepDialing connects to a node with a higher id as long as it is a peer.
func (p *peer) keepDialing() {
	p.keep(p.ctx, Control, func(conn net.Conn, who Peer) error {
		life, over := context.WithCancel(p.ctx)
		var data sync.WaitGroup
		defer data.Wait()
		defer over()
		return p.run(conn, who, Control, func() {
			if p.mesh.cfg.Node.Mixed {
				return
			}
			for loop := range max(p.mesh.cfg.Node.loops(), who.Loops, 1) {
				data.Go(func() { p.keepData(life, Data(loop)) })
			}
		})
	})
}

// keepData connects a data lane as long as the control lane lives.
func (p *peer) keepData(life context.Context, at Lane) {
	p.keep(life, at, func(conn net.Conn, who Peer) error { return p.run(conn, who, at, func() {}) })
}

// keep dials one lane again and again until ctx ends.
func (p *peer) keep(ctx context.Context, at Lane, run func(net.Conn, Peer) error) {
	d := dialing{
		options: &p.mesh.cfg.Options, plane: planeReplica, where: &p.where, expect: p.id, lane: at,
		problem: &p.problem, ended: func(err error) {
			p.mesh.complain(err, "connection ended", "node", p.id, "lane", laneName(at))
		},
	}
	d.keep(ctx, run)
}

// laneReceiver hands the frames of a lane to the mesh's user.
type laneReceiver struct {
	receive func(from uint8, lane Lane, h *wire.Header, f *buffer.Frame)
	from    uint8
	lane    Lane
}

func (r *laneReceiver) borrows(*wire.Header) bool { return false }

func (r *laneReceiver) frame(h *wire.Header, _ []byte, f *buffer.Frame) error {
	r.receive(r.from, r.lane, h, f)
	return nil
}

func (r *laneReceiver) overBudget(*wire.Header) {}
