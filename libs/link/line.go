package link

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/wire"
)

const (
	// watchEvery is the precision of deadlines.
	watchEvery = 50 * time.Millisecond
	// bulkRequest is the size from which a request waits behind smaller ones.
	bulkRequest = 64 << 10
)

// state is how far a call has got on its connection.
type state uint8

const (
	free     state = iota
	waiting        // in the queue: nothing of it was sent
	writing        // the writer has its body
	sent           // the answer may come
	answered       // the answer came while the writer still had the body
)

// slot is a call under way.
type slot struct {
	call     *Call
	number   uint64 // life of the slot << 32 | its index
	size     int
	deadline time.Time
	state    state
}

// line is one life of a Remote's connection with the calls on it. A call ends when nobody uses its
// bytes any more: while the writer has them it is neither given up nor finished.
type line struct {
	remote *Remote
	stream *stream
	who    Peer
	heard  atomic.Uint64 // frames that came
	doubt  atomic.Uint64 // the count of heard at which doubt arose + 1; 0: never
	called chan struct{} // ends the calm

	mu    sync.Mutex
	over  bool // the connection has ended
	calm  bool // watch looks seldom: no call was under way when it last did
	slots []slot
	spare []uint32 // free slots
	bytes int      // of calls under way
}

// serve sends a call.
func (l *line) serve(c *Call) {
	size := wire.HeaderSize + len(c.Body) + 4*len(c.InFlight)
	l.mu.Lock()
	var why Reason
	switch {
	case l.over, l.doubted():
		why = ReasonUnreachable
	case l.bytes > 0 && l.bytes+size > l.remote.cfg.Window, size > int(l.remote.cfg.MaxFrame):
		why = ReasonBusy
	default:
		why = l.send(c, size)
	}
	l.mu.Unlock()
	if why != ReasonNone {
		c.Refuse(wire.CodeTransientNotAccepted, why)
	}
}

// send enters the call and queues its frame. l.mu is held.
func (l *line) send(c *Call, size int) Reason {
	s := l.enter()
	wait := l.remote.cfg.Limit
	if c.Deadline != 0 {
		wait = time.Duration(c.Deadline) * time.Millisecond
	}
	s.call, s.size, s.state, s.deadline = c, size, waiting, time.Now().Add(wait)
	var head wire.Header
	putCall(head[:], c, size, s.number, uint32(wait/time.Millisecond))
	p := post{body: c.Body, ticket: s.number, urgent: size < bulkRequest}
	if len(c.InFlight) > 0 {
		p.tail = appendNumbers(nil, c.InFlight)
	}
	if l.stream.out.push(&head, &p, true) != queued {
		l.leave(s)
		return ReasonUnreachable
	}
	l.bytes += size
	if l.calm {
		l.calm = false
		select {
		case l.called <- struct{}{}:
		default:
		}
	}
	return ReasonNone
}

// enter takes a free slot. l.mu is held.
func (l *line) enter() *slot {
	if n := len(l.spare); n > 0 {
		s := &l.slots[l.spare[n-1]]
		l.spare = l.spare[:n-1]
		return s
	}
	l.slots = append(l.slots, slot{number: 1<<32 | uint64(len(l.slots))})
	return &l.slots[len(l.slots)-1]
}

// leave frees a slot; its number is not used again. l.mu is held.
func (l *line) leave(s *slot) {
	*s = slot{number: s.number + 1<<32}
	l.spare = append(l.spare, uint32(s.number))
}

// end takes a call off the line. l.mu is held.
func (l *line) end(s *slot) *Call {
	c := s.call
	l.bytes -= s.size
	l.leave(s)
	return c
}

// find returns the slot of a call that is still under way, or nil. l.mu is held.
func (l *line) find(number uint64) *slot {
	if at := uint32(number); int(at) < len(l.slots) && l.slots[at].number == number && l.slots[at].state != free {
		return &l.slots[at]
	}
	return nil
}

// begin implements tickets.
func (l *line) begin(ticket uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.find(ticket)
	if s == nil {
		return false
	}
	s.state = writing
	return true
}

// written implements tickets.
func (l *line) written(ticket uint64) {
	l.mu.Lock()
	s := l.find(ticket)
	if s == nil || s.state == writing {
		if s != nil {
			s.state = sent
		}
		l.mu.Unlock()
		return
	}
	c := l.end(s)
	l.mu.Unlock()
	c.Finish()
}

// answer fills in what came for a call and finishes it, now or when the writer is done with it; false: it
// is not under way any more, or was never sent.
func (l *line) answer(number uint64, fill func(*Call)) bool {
	l.mu.Lock()
	s := l.find(number)
	switch {
	case s == nil || s.state == waiting || s.state == answered:
		l.mu.Unlock()
		return false
	case s.state == writing:
		fill(s.call)
		s.state = answered
		l.mu.Unlock()
		return true
	}
	c := l.end(s)
	l.mu.Unlock()
	fill(c)
	c.Finish()
	return true
}

// lost ends all calls once nobody reads or writes any more.
func (l *line) lost() {
	l.mu.Lock()
	l.over = true
	l.mu.Unlock() // from here on nobody enters
	why := ReasonUnreachable
	if l.remote.ctx.Err() != nil {
		why = ReasonClosing
	}
	for i := range l.slots {
		switch s := &l.slots[i]; s.state {
		case waiting:
			l.end(s).Refuse(wire.CodeTransientNotAccepted, why)
		case writing, sent:
			l.end(s).Refuse(wire.CodeTransientNotCommitted, why)
		case answered:
			l.end(s).Finish()
		}
	}
}

// doubted reports whether nothing has come since the other side was found silent.
func (l *line) doubted() bool { return l.doubt.Load() == l.heard.Load()+1 }

// watch ends calls whose time is up, all of them when the other side is silent, and in the end the connection.
func (l *line) watch(ctx context.Context) {
	w := watcher{line: l, quiet: time.Now(), due: time.Now().Add(watchEvery)}
	wake := time.NewTimer(watchEvery)
	defer wake.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.called:
			wake.Reset(w.next(time.Now(), watchEvery))
		case now := <-wake.C:
			l.expire(now)
			if w.look(now) {
				l.remote.cfg.Log.Warn("service is silent", "node", l.who.ID)
				l.stream.close()
				return
			}
			wake.Reset(w.next(now, w.pause()))
		}
	}
}

// watcher is what watch knows.
type watcher struct {
	line  *line
	heard uint64
	quiet time.Time // since then nothing came
	asked time.Time // for a sign of life that is owed; zero: none is
	due   time.Time // of the next look
}

// next notes when the next look is due.
func (w *watcher) next(now time.Time, pause time.Duration) time.Duration {
	w.due = now.Add(pause)
	return pause
}

// pause is how long nothing needs a look. A line without calls, which owes no sign of life, has no deadlines:
// a tenth of Silence is precise enough for it, and the next call ends the pause.
func (w *watcher) pause() time.Duration {
	if w.asked.IsZero() && w.line.relax() {
		return max(watchEvery, w.line.remote.cfg.Silence/10)
	}
	return watchEvery
}

// relax begins the calm unless a call is under way.
func (l *line) relax() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calm = len(l.spare) == len(l.slots)
	return l.calm
}

// look reports whether the silence is too long.
func (w *watcher) look(now time.Time) bool {
	l, c := w.line, &w.line.remote.cfg
	late := now.Sub(w.due) > 3*watchEvery
	if n := l.heard.Load(); n != w.heard {
		w.heard, w.quiet, w.asked = n, now, time.Time{}
		return false
	}
	if late && !w.asked.IsZero() {
		w.asked = now // this process was not run: what came meanwhile is about to be read
	}
	silence := now.Sub(w.quiet)
	switch {
	case w.asked.IsZero():
		if silence >= c.Silence/5 || silence > c.Doubt/8 && l.waits() {
			w.asked = now
			l.ping()
		}
	case now.Sub(w.asked) >= c.Silence-c.Silence/5:
		return true
	case now.Sub(w.asked) >= c.Doubt:
		if !l.doubted() {
			l.doubt.Store(w.heard + 1)
			c.Log.Info("service does not answer, calls are made elsewhere", "node", l.who.ID)
		}
		l.expire(now.Add(beyondDeadlines))
	}
	return false
}

// beyondDeadlines is more than any call may wait.
const beyondDeadlines = 1 << 20 * time.Hour

// waits reports whether a call is under way.
func (l *line) waits() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.spare) < len(l.slots)
}

// expire ends the calls whose deadline has passed, except those the writer is at.
func (l *line) expire(now time.Time) {
	for at := 0; ; at++ {
		l.mu.Lock()
		for ; at < len(l.slots); at++ {
			if s := &l.slots[at]; (s.state == waiting || s.state == sent) && now.After(s.deadline) {
				break
			}
		}
		if at >= len(l.slots) {
			l.mu.Unlock()
			return
		}
		s := &l.slots[at]
		was := s.state
		c := l.end(s)
		l.mu.Unlock()
		switch {
		case was == waiting && l.doubted():
			c.Refuse(wire.CodeTransientNotAccepted, ReasonUnreachable)
		case was == waiting:
			c.Refuse(wire.CodeTransientNotAccepted, ReasonBusy)
		default:
			c.Refuse(wire.CodeTransientNotCommitted, ReasonUnreachable)
		}
	}
}

func (l *line) ping() {
	node := l.remote.cfg.Node
	h := wire.PingHeader{
		Preamble: wire.Preamble{Cluster: node.Cluster, Command: wire.CommandPing}, ClusterUUID: node.ClusterUUID(), NodeUUID: node.UUID,
		Epoch: node.Epoch, Node: node.ID, Mixed: node.Mixed,
	}
	b := wire.AppendPing(nil, &h, &wire.PingBody{})
	l.stream.out.push(nil, &post{body: b, urgent: true}, true)
}

// borrows implements receiver: answers that are not frames of their own are copied into the call.
func (l *line) borrows(h *wire.Header) bool {
	switch h.Command() {
	case wire.CommandPing, wire.CommandPong:
		return true
	case wire.CommandReply:
		var c wire.ReplyContext
		return c.Decode(h[:]) == nil && !c.Framed
	}
	return false
}

var errAnswer = fmt.Errorf("%w: an answer that cannot be understood", errRule)

// frame implements receiver.
func (l *line) frame(h *wire.Header, body []byte, f *buffer.Frame) error {
	l.heard.Add(1)
	switch c := h.Command(); {
	case c == wire.CommandReply:
		return l.reply(h, body, f)
	case c == wire.CommandEviction:
		return l.eviction(h)
	case feedTold.has(c) && l.remote.cfg.Feed != nil:
		l.remote.cfg.Feed(h, f)
		return nil
	case feedTold.has(c):
		l.unasked(f)
	default:
		release(f)
	}
	return nil
}

func (l *line) unasked(f *buffer.Frame) {
	l.stream.count.unasked.Inc()
	release(f)
}

func release(f *buffer.Frame) {
	if f != nil {
		f.Release()
	}
}

func (l *line) reply(h *wire.Header, body []byte, f *buffer.Frame) error {
	var r wire.ReplyHeader
	var c wire.ReplyContext
	if r.Decode(h[:]) != nil && !r.Operation.Native() || c.Decode(h[:]) != nil {
		release(f)
		return errAnswer
	}
	taken := false
	found := l.answer(c.Correlation, func(call *Call) {
		takeAnswer(call, &r, &c)
		switch {
		case f != nil && c.Framed:
			call.OutFrame, taken = f, true
		default:
			call.Out = append(call.Out[:0], body...)
		}
	})
	if !found {
		l.stream.count.unasked.Inc()
	}
	if !taken {
		release(f)
	}
	return nil
}

func (l *line) eviction(h *wire.Header) error {
	b := *h
	number := wire.TakeCorrelation(b[:])
	var e wire.EvictionHeader
	if e.Decode(b[:]) != nil {
		return errAnswer
	}
	if !l.answer(number, func(c *Call) { c.Evict = e.Reason }) {
		l.stream.count.unasked.Inc()
	}
	return nil
}

// overBudget implements receiver.
func (l *line) overBudget(h *wire.Header) {
	l.heard.Add(1)
	var c wire.ReplyContext
	if h.Command() != wire.CommandReply || c.Decode(h[:]) != nil {
		return
	}
	l.answer(c.Correlation, func(call *Call) {
		call.Status, call.Reason, call.Out = wire.CodeTransientNotCommitted, ReasonBudget, call.Out[:0]
		if call.Header.Operation == wire.OpNonReplicated {
			call.Status = wire.CodeTransientNotAccepted
		}
	})
}
