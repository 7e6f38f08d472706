package link

import (
	"bytes"
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/wire"
)

// sink is a connection that keeps what is written to it, or fails.
type sink struct {
	net.Conn
	got    bytes.Buffer
	writes int
	fail   error
}

func (s *sink) Write(b []byte) (int, error) {
	s.writes++
	if s.fail != nil {
		return 0, s.fail
	}
	return s.got.Write(b)
}

func (s *sink) SetWriteDeadline(time.Time) error { return nil }

// order decodes the commit numbers of the frames a sink got.
func (s *sink) order(t *testing.T) (numbers []uint64) {
	t.Helper()
	for b := s.got.Bytes(); len(b) > 0; {
		p, err := wire.DecodePreamble(b)
		if err != nil || int(p.Size) > len(b) {
			t.Fatalf("not a frame: %v", err)
		}
		numbers = append(numbers, wire.DecodeU128(b[152:]).Lo) // commit of a Commit
		b = b[p.Size:]
	}
	return numbers
}

func newWriter(limit int, fail error) (*outbound, *writer, *sink) {
	q, s := &outbound{}, &sink{fail: fail}
	q.init(limit)
	return q, &writer{conn: s, out: q, count: &NewMetrics(nil).lane("test", "test").out}, s
}

// sized is a frame of n body bytes that carries number where a Commit has its own.
func sized(number uint64, n int) *wire.Header {
	h := *commitFrame(number)
	p, _ := wire.DecodePreamble(h[:])
	p.Size = uint32(wire.HeaderSize + n)
	h[48], h[49], h[50], h[51] = byte(p.Size), byte(p.Size>>8), byte(p.Size>>16), byte(p.Size>>24)
	return &h
}

// TestUrgentOvertakes: urgent frames leave first, and both kinds keep their order.
func TestUrgentOvertakes(t *testing.T) {
	q, w, s := newWriter(1<<30, nil)
	var want []uint64
	for n := range uint64(200) {
		urgent := n%3 == 0
		if urgent {
			want = append(want, n)
		}
		q.push(sized(n, 9000), &post{body: make([]byte, 9000), urgent: urgent}, false)
	}
	for n := range uint64(200) {
		if n%3 != 0 {
			want = append(want, n)
		}
	}
	q.end(false)
	if err := w.run(); err != nil {
		t.Fatal(err)
	}
	if got := s.order(t); !slices.Equal(got, want) {
		t.Errorf("left as %v", got)
	}
	if q.waiting() != 0 {
		t.Errorf("%d bytes still wait", q.waiting())
	}
}

// late is a sink that gets an urgent frame into the queue while bulk is being written.
type late struct {
	*sink
	q    *outbound
	once bool
}

func (l *late) Write(b []byte) (int, error) {
	if !l.once {
		l.once = true
		l.q.push(commitFrame(99), &post{urgent: true}, false)
	}
	return l.sink.Write(b)
}

// TestUrgentBetweenBulk: an urgent frame waits for one write, not for all the bulk that was there before it.
func TestUrgentBetweenBulk(t *testing.T) {
	q, w, s := newWriter(1<<30, nil)
	w.conn = &late{sink: s, q: q}
	for n := range uint64(10) {
		q.push(sized(n, 600_000), &post{body: make([]byte, 600_000)}, false)
	}
	go func() {
		until(t, "all is written", func() bool { return q.waiting() == 0 })
		q.end(false)
	}()
	if err := w.run(); err != nil {
		t.Fatal(err)
	}
	if at := slices.Index(s.order(t), 99); at < 1 || at > 2 {
		t.Errorf("the urgent frame was number %d of %v", at, s.order(t))
	}
}

// TestQueueLimit: a queue takes what fits, and one frame of any size when it is empty.
func TestQueueLimit(t *testing.T) {
	q := &outbound{}
	q.init(1000)
	for i, c := range []struct {
		size  int
		force bool
		want  outcome
	}{{5000, false, queued}, {0, false, full}, {0, true, queued}} {
		if got := q.push(sized(1, c.size), &post{body: make([]byte, c.size)}, c.force); got != c.want {
			t.Errorf("frame %d: %d", i, got)
		}
	}
	waited := make(chan outcome, 1)
	go func() { waited <- q.pushWait(commitFrame(1), &post{}) }()
	q.written(5000)
	if got := within(t, "room", waited); got != queued {
		t.Errorf("after the wait: %d", got)
	}
	go func() { waited <- q.pushWait(sized(1, 900), &post{body: make([]byte, 900)}) }()
	q.end(true)
	if got := within(t, "end", waited); got != ended {
		t.Errorf("at the end: %d", got)
	}
}

// TestOwnersAreReleased: whether a frame was written, failed or never came to it.
func TestOwnersAreReleased(t *testing.T) {
	pool := buffer.NewPool(1 << 20)
	for name, fail := range map[string]error{"written": nil, "failed": errors.New("broken")} {
		q, w, s := newWriter(1<<30, fail)
		for n := range uint64(10) {
			f, _ := pool.Try(5000)
			f.Bytes()[0] = byte(n)
			q.push(sized(n, 5000), &post{body: f.Bytes(), owner: f}, false)
			f.Release()
		}
		q.end(false)
		if err := w.run(); !errors.Is(err, fail) {
			t.Errorf("%s: %v", name, err)
		}
		q.drop()
		if pool.Used() != 0 {
			t.Errorf("%s: %d bytes held", name, pool.Used())
		}
		if fail == nil && len(s.order(t)) != 10 {
			t.Errorf("%d frames written", len(s.order(t)))
		}
	}
	q, w, _ := newWriter(1<<30, nil)
	f, _ := pool.Try(5000)
	q.push(sized(1, 5000), &post{body: f.Bytes(), owner: f}, false)
	f.Release()
	q.end(true)
	_ = w.run()
	if n := q.drop(); n != 1 || pool.Used() != 0 {
		t.Errorf("killed: %d dropped, %d bytes held", n, pool.Used())
	}
}

// TestSmallFramesShareWrites: a backlog of small frames leaves in few writes.
func TestSmallFramesShareWrites(t *testing.T) {
	q, w, s := newWriter(1<<30, nil)
	for n := range uint64(10_000) {
		q.push(sized(n, 50), &post{body: make([]byte, 50)}, false)
	}
	q.end(false)
	if err := w.run(); err != nil {
		t.Fatal(err)
	}
	if s.writes > 5 || len(s.order(t)) != 10_000 {
		t.Errorf("%d writes for %d frames", s.writes, len(s.order(t)))
	}
}
