package link

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/wire"
)

const (
	// readBuffer is what a connection reads ahead.
	readBuffer = 64 << 10
)

// receiver takes the frames of a connection, on its reading goroutine.
type receiver interface {
	// borrows reports whether a frame that fits into the read buffer needs no buffer of its own.
	borrows(h *wire.Header) bool
	// frame takes a frame: h and body are valid during the call, unless f, which then belongs to the
	// receiver, holds them. An error closes the connection.
	frame(h *wire.Header, body []byte, f *buffer.Frame) error
	// overBudget is told of a frame that was read and thrown away.
	overBudget(h *wire.Header)
}

// errRule closes a connection whose peer sent what may not come on it.
var errRule = errors.New("frame is not allowed here")

// stream is an authenticated connection: a writing goroutine behind a queue, and a reader that takes no
// bytes it has no budget for.
type stream struct {
	conn       net.Conn
	allowed    frameSet
	pool       *buffer.Pool
	maxFrame   uint32
	budgetWait time.Duration
	patience   time.Duration // for a begun frame to arrive, plus one second for each MiB
	count      *laneMetrics
	to         receiver
	tickets    tickets

	out  outbound
	in   *bufio.Reader
	once sync.Once
	done chan struct{} // closed when run has returned
}

// run serves the connection until it ends, and returns when nobody uses it any more. gone is called
// before the last use of the queue: nobody finds the connection from then on.
func (s *stream) run(gone func()) error {
	defer close(s.done)
	w := &writer{conn: s.conn, out: &s.out, tickets: s.tickets, count: &s.count.out}
	wrote := make(chan error, 1)
	go func() {
		err := w.run()
		s.close()
		wrote <- err
	}()
	err := s.read()
	gone()
	s.close()
	if werr := <-wrote; werr != nil && errors.Is(err, net.ErrClosed) {
		err = werr
	}
	s.count.lost.Add(float64(s.out.drop()))
	return err
}

// close ends the connection at once.
func (s *stream) close() {
	s.once.Do(func() {
		s.out.end(true)
		s.conn.Close()
	})
}

// drain lets the queued frames go out and then closes, after grace at the latest.
func (s *stream) drain(grace time.Duration) {
	s.out.end(false)
	time.AfterFunc(grace, s.close)
}

// read passes the frames of the connection on until it ends.
func (s *stream) read() error {
	s.in = bufio.NewReaderSize(s.conn, readBuffer)
	for {
		if err := s.next(); err != nil {
			return err
		}
	}
}

func (s *stream) next() error {
	head, err := s.header()
	if err != nil {
		return err
	}
	size, err := wire.FrameSize(head, s.maxFrame)
	if err != nil {
		return fmt.Errorf("%w: %w", errRule, err)
	}
	h := (*wire.Header)(head)
	if c := h.Command(); !s.allowed.has(c) {
		return fmt.Errorf("%w: %v", errRule, c)
	}
	s.count.in.add(1, int(size))
	if sealed(h.Command()) && wire.VerifySeal(head) != nil {
		s.count.seal.Inc()
		return s.discard(int(size))
	}
	switch {
	case size == wire.HeaderSize:
		err = s.to.frame(h, nil, nil)
		return s.after(err, wire.HeaderSize)
	case int(size) <= readBuffer && s.to.borrows(h):
		return s.borrowed(int(size))
	}
	return s.owned(h, int(size))
}

// header waits for a header: for ever for its first byte, then only so long.
func (s *stream) header() ([]byte, error) {
	if _, err := s.in.Peek(1); err != nil {
		return nil, err
	}
	return s.peek(wire.HeaderSize)
}

// peek returns the next n bytes, at most the read buffer's size, without taking them.
func (s *stream) peek(n int) ([]byte, error) {
	if s.in.Buffered() >= n {
		return s.in.Peek(n)
	}
	s.hurry(n)
	defer s.relax()
	return s.in.Peek(n)
}

// hurry limits the time for n bytes that are on their way; relax ends that.
func (s *stream) hurry(n int) {
	s.conn.SetReadDeadline(time.Now().Add(s.patience + time.Duration(n>>20)*time.Second))
}

func (s *stream) relax() { s.conn.SetReadDeadline(time.Time{}) }

func (s *stream) borrowed(size int) error {
	b, err := s.peek(size)
	if err != nil {
		return err
	}
	return s.after(s.to.frame((*wire.Header)(b), b[wire.HeaderSize:], nil), size)
}

// owned reads a frame into a buffer of its own, once the budget has room for it.
func (s *stream) owned(h *wire.Header, size int) error {
	f, ok := s.pool.Try(size)
	if !ok {
		f, ok = s.pool.Wait(size, s.budgetWait)
	}
	if !ok {
		s.count.budget.Inc()
		s.to.overBudget(h)
		return s.discard(size)
	}
	b := f.Bytes()
	if err := s.fill(b); err != nil {
		f.Release()
		return err
	}
	return s.to.frame((*wire.Header)(b), b[wire.HeaderSize:], f)
}

func (s *stream) fill(b []byte) error {
	if s.in.Buffered() < len(b) {
		s.hurry(len(b))
		defer s.relax()
	}
	_, err := io.ReadFull(s.in, b)
	return err
}

// discard takes a frame's bytes off the connection without keeping them.
func (s *stream) discard(size int) error {
	if s.in.Buffered() < size {
		s.hurry(size)
		defer s.relax()
	}
	_, err := s.in.Discard(size)
	return err
}

// after takes n handled bytes off the read buffer.
func (s *stream) after(err error, n int) error {
	if err != nil {
		return err
	}
	_, err = s.in.Discard(n)
	return err
}
