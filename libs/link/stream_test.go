package link

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/wire"
)

// script is a connection that reads what it was given, in pieces of a given size.
type script struct {
	net.Conn
	rest  []byte
	piece int
}

func (s *script) Read(b []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), s.piece)], s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (s *script) SetReadDeadline(time.Time) error { return nil }

// checker is a receiver that holds what it is given against the bytes of the script.
type checker struct {
	t      testing.TB
	s      *stream
	all    []byte
	at     int
	taken  int
	borrow bool
}

func (c *checker) borrows(*wire.Header) bool { return c.borrow }

func (c *checker) frame(h *wire.Header, body []byte, f *buffer.Frame) error {
	size := wire.HeaderSize + len(body)
	if !c.s.allowed.has(h.Command()) {
		c.t.Errorf("a %v got through", h.Command())
	}
	for c.at+size <= len(c.all) && !bytes.Equal(c.all[c.at:c.at+wire.HeaderSize], h[:]) { // dropped frames in between
		p, _ := wire.DecodePreamble(c.all[c.at:])
		c.at += int(p.Size)
	}
	if c.at+size > len(c.all) || !bytes.Equal(c.all[c.at+wire.HeaderSize:c.at+size], body) {
		c.t.Error("a frame that was not sent")
	}
	c.at += size
	c.taken++
	release(f)
	return nil
}

func (c *checker) overBudget(*wire.Header) {}

// readAll runs a reader over b and returns how many frames it took and how it ended.
func readAll(t testing.TB, b []byte, piece int, borrow bool) (taken int, err error) {
	pool := buffer.NewPool(1 << 20)
	s := &stream{
		conn: &script{rest: b, piece: piece}, allowed: nativeFrames, pool: pool, maxFrame: wire.MaxFrameSize, patience: time.Second,
		count: NewMetrics(nil).lane("test", "test"),
	}
	c := &checker{t: t, s: s, all: b, borrow: borrow}
	s.to = c
	err = s.read()
	if pool.Used() != 0 {
		t.Errorf("%d bytes held", pool.Used())
	}
	return c.taken, err
}

// TestReaderPieces: frames are found whatever pieces they arrive in, and a cut frame is an error.
func TestReaderPieces(t *testing.T) {
	var all []byte
	for i, n := range []int{0, 1, 100, 5000, 70_000, 0, 300_000} {
		all = append(all, prepareFrame(uint64(i), n)[:]...)
		all = append(all, bytes.Repeat([]byte{byte(i)}, n)...)
		all = append(all, commitFrame(uint64(i))[:]...)
	}
	for _, piece := range []int{1, 7, 255, 256, 257, 4096, 1 << 20} {
		for _, borrow := range []bool{false, true} {
			if taken, err := readAll(t, all, piece, borrow); taken != 14 || !errors.Is(err, io.EOF) {
				t.Errorf("pieces of %d: %d frames, %v", piece, taken, err)
			}
		}
	}
	if taken, err := readAll(t, all[:len(all)-1], 4096, false); taken != 13 || err == nil {
		t.Errorf("cut: %d frames, %v", taken, err)
	}
}

// FuzzReader gives arbitrary bytes to the reader of a connection.
func FuzzReader(f *testing.F) {
	f.Add(append(prepareFrame(1, 3)[:], 1, 2, 3), 100, true)
	f.Add(commitFrame(1)[:], 1, false)
	f.Fuzz(func(t *testing.T, b []byte, piece int, borrow bool) {
		if _, err := readAll(t, b, max(1, piece%(1<<20)), borrow); err == nil {
			t.Error("no end")
		}
	})
}
