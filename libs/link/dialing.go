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

// dialing keeps one connection to a process.
type dialing struct {
	options *Options
	plane   string
	address func() string
	expect  uint8
	lane    Lane
	problem *problem
	ended   func(error)
}

// keep connects and has run serve the connection, again and again until ctx ends.
func (d *dialing) keep(ctx context.Context, run func(net.Conn, Peer) error) {
	failed, before := 0, false
	for ctx.Err() == nil {
		conn, who, err := d.options.dial(ctx, d.address(), d.expect, d.lane)
		failed++
		if err != nil {
			d.explain(ctx, err)
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

// explain counts a failed attempt, and writes why the process cannot be reached once for each new reason.
func (d *dialing) explain(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	d.options.Metrics.failed.WithLabelValues(d.plane).Inc()
	var r *refusal
	if errors.As(err, &r) {
		d.options.Metrics.refused.WithLabelValues(d.plane, r.reason).Inc()
	}
	if d.problem.news(steadyText(err)) {
		d.options.Log.Warn("cannot connect to node", "node", d.expect, "plane", d.plane, "address", d.address(), "error", err)
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
