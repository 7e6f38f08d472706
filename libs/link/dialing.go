package link

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Time between attempts to connect: the second follows at once, so that a restarted peer is back within
// one round of liveness pings.
const (
	firstRetry  = 20 * time.Millisecond // to firstRetry + retryJitter
	retryJitter = 30 * time.Millisecond
	longRetry   = time.Second
)

// retryAfter is how long to wait after n attempts in a row that came to nothing.
func retryAfter(n int) time.Duration {
	if n <= 1 {
		return firstRetry + rand.N(retryJitter)
	}
	base := min(firstRetry<<min(n, 10), longRetry)
	return min(base/2+rand.N(base), longRetry)
}

// problem is the last reason for which a process could not be reached.
type problem struct {
	mu   sync.Mutex
	text string
}

// news reports whether the reason differs from the one before.
func (p *problem) news(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	differs := p.text != text
	p.text = text
	return differs
}

func (p *problem) solved() { p.news("") }

// whereabouts is the address of a process, which may change while it is dialed: a process that starts again
// in a container has another name, and nobody answers for the old one.
type whereabouts struct {
	mu      sync.Mutex
	address string
	moved   chan struct{} // closed when address has changed
}

func (w *whereabouts) set(address string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.moved != nil && address == w.address {
		return
	}
	if w.moved != nil {
		close(w.moved)
	}
	w.address, w.moved = address, make(chan struct{})
}

// get is the address, and what tells that it is not the address any more.
func (w *whereabouts) get() (string, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.address, w.moved
}

// dialing keeps one connection to a process.
type dialing struct {
	options *Options
	plane   string
	where   *whereabouts
	expect  uint8
	lane    Lane
	problem *problem
	ended   func(error)
}

// keep connects and has run serve the connection, again and again until ctx ends.
func (d *dialing) keep(ctx context.Context, run func(net.Conn, Peer) error) {
	failed, before := 0, false
	for ctx.Err() == nil {
		address, moved := d.where.get()
		conn, who, err := d.attempt(ctx, address, moved)
		failed++
		if err != nil {
			d.explain(ctx, address, err)
		} else {
			if before {
				d.options.Metrics.reconnects.WithLabelValues(d.plane).Inc()
			}
			before = true
			begun := time.Now()
			d.ended(run(conn, who))
			if time.Since(begun) > longRetry {
				failed = 0 // it was a connection, not another way to refuse one
			}
		}
		if !pause(ctx, retryAfter(failed)) {
			return
		}
	}
}

// attempt dials an address until the process has moved.
func (d *dialing) attempt(ctx context.Context, address string, moved <-chan struct{}) (net.Conn, Peer, error) {
	ctx, done := context.WithCancel(ctx)
	defer done()
	go func() {
		select {
		case <-moved:
			done()
		case <-ctx.Done():
		}
	}()
	return d.options.dial(ctx, address, d.expect, d.lane)
}

// explain counts a failed attempt, and writes why the process cannot be reached once for each new reason.
func (d *dialing) explain(ctx context.Context, address string, err error) {
	if ctx.Err() != nil {
		return
	}
	d.options.Metrics.failed.WithLabelValues(d.plane).Inc()
	var r *refusal
	if errors.As(err, &r) {
		d.options.Metrics.refused.WithLabelValues(d.plane, r.reason).Inc()
	}
	if d.problem.news(steadyText(err)) {
		d.options.Log.Warn("cannot connect to node", "node", d.expect, "plane", d.plane, "address", address, "error", err)
	}
}

// steadyText is the text of an error without the ports of the attempt, so that the same failure reads the
// same each time.
func steadyText(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Op + ": " + op.Err.Error()
	}
	return err.Error()
}
