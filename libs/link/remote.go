package link

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/wire"
)

// RemoteConfig is what a Remote is made of. The functions are called on the connection's goroutines and
// must not block.
type RemoteConfig struct {
	Options
	Address string        // host:port of the other process's service plane
	Expect  uint8         // its node id, or AnyNode
	Window  int           // bytes of calls without an answer, 0: 32 MiB
	Limit   time.Duration // how long a call without a Deadline of its own waits for its answer, 0: 30 s
	// Silence is how long nothing may come before the connection is given up, 0: 5 s. The other process may
	// be stopped while its sockets are not: it is asked for a sign of life, after a fifth of Silence or,
	// while calls wait, after an eighth of Doubt.
	Silence time.Duration
	// Doubt is how long a sign of life may be owed before calls that wait get 57 and new ones 58, so that
	// they can be made elsewhere, 0: 400 ms. The connection stays, and the next frame ends the doubt.
	Doubt time.Duration

	// Feed takes what was asked for with Ask, in the order in which it was sent: frames 9, 19, 20, 21, 23
	// and 25. h is valid during the call. f is nil for a header alone; otherwise it holds header and body
	// and belongs to the receiver. May be nil.
	Feed func(h *wire.Header, f *buffer.Frame)
	// Up and Down alternate. What was asked for with Ask ends at Down and must be asked for again. May be nil.
	Up, Down func(p Peer)
}

// Remote is the service of another process: a Service whose calls travel over one connection, any
// number at a time. It connects by itself and goes on doing so until Close.
type Remote struct {
	cfg     RemoteConfig
	wrong   complaints
	count   *laneMetrics
	where   whereabouts
	problem problem
	line    atomic.Pointer[line] // nil: not connected
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// Dial begins to connect to a process and returns at once.
func Dial(cfg RemoteConfig) *Remote {
	cfg.fill()
	if cfg.Window == 0 {
		cfg.Window = 32 << 20
	}
	if cfg.Limit == 0 {
		cfg.Limit = 30 * time.Second
	}
	if cfg.Silence == 0 {
		cfg.Silence = 5 * time.Second
	}
	if cfg.Doubt == 0 {
		cfg.Doubt = 400 * time.Millisecond
	}
	r := &Remote{cfg: cfg, wrong: cfg.complaints(planeService), count: cfg.Metrics.lane(planeService, "client")}
	r.where.set(cfg.Address)
	r.ctx, r.cancel = context.WithCancel(context.Background())
	d := dialing{
		options: &r.cfg.Options, plane: planeService, where: &r.where, expect: cfg.Expect,
		problem: &r.problem,
		ended: func(err error) {
			complainAbout(r.ctx, &r.wrong, err, "connection ended", "node", cfg.Expect)
		},
	}
	r.running.Go(func() { d.keep(r.ctx, r.run) })
	return r
}

// SetAddress changes where the process is looked for from the next attempt to connect on.
func (r *Remote) SetAddress(address string) { r.where.set(address) }

// Peer is the process at the other end, while it is connected.
func (r *Remote) Peer() (Peer, bool) {
	if l := r.line.Load(); l != nil {
		return l.who, true
	}
	return Peer{}, false
}

// Serve implements Service. What was surely not sent is refused with code 58; a call whose answer does
// not come, with 57. Call.Frame stays with the caller.
func (r *Remote) Serve(c *Call) {
	l := r.line.Load()
	switch {
	case r.ctx.Err() != nil:
		c.Refuse(wire.CodeTransientNotAccepted, ReasonClosing)
	case l == nil:
		c.Refuse(wire.CodeTransientNotAccepted, ReasonUnreachable)
	default:
		l.serve(c)
	}
}

// Ask sends a RequestPrepares, RequestStateTransfer or RequestStateChunk frame and never blocks; false:
// not connected.
func (r *Remote) Ask(h interface{ Put(b []byte) }) bool {
	l := r.line.Load()
	if l == nil {
		return false
	}
	var head wire.Header
	h.Put(head[:])
	return l.stream.out.push(&head, &post{urgent: true}, true) == queued
}

// Close finishes what is outstanding, ends the connection and waits for it.
func (r *Remote) Close() {
	r.cancel()
	if l := r.line.Load(); l != nil {
		l.stream.close()
	}
	r.running.Wait()
}

// run serves one connection.
func (r *Remote) run(conn net.Conn, who Peer) error {
	l := &line{remote: r, who: who, called: make(chan struct{}, 1)}
	l.stream = r.cfg.stream(conn, answeringFrames, r.count)
	l.stream.to, l.stream.tickets = l, l
	r.problem.solved()
	r.line.Store(l)
	if r.ctx.Err() != nil { // Close may have looked before
		l.stream.close()
	}
	gauge := r.cfg.Metrics.connections.WithLabelValues(planeService)
	gauge.Inc()
	defer gauge.Dec()
	r.cfg.Log.Info("service connected", "node", who.ID, "address", conn.RemoteAddr())
	if r.cfg.Up != nil {
		r.cfg.Up(who)
	}
	watching, stop := context.WithCancel(r.ctx)
	var watch sync.WaitGroup
	watch.Go(func() { l.watch(watching) })
	err := l.stream.run(func() { r.line.CompareAndSwap(l, nil) })
	stop()
	watch.Wait()
	l.lost()
	r.cfg.Log.Info("service disconnected", "node", who.ID)
	if r.cfg.Down != nil {
		r.cfg.Down(who)
	}
	return err
}
