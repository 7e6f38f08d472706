package link

import (
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/wire"
)

// benchPair is two connected members that count what the second receives.
func benchPair(b *testing.B) (from *member, received *atomic.Int64, wait func(int64)) {
	received = new(atomic.Int64)
	reached := make(chan struct{}, 1)
	var goal atomic.Int64
	from = newMember(b, 1, func(c *MeshConfig) { c.Queue = 3 << 20 })
	to := newMember(b, 2, func(c *MeshConfig) {
		c.Receive = func(_ uint8, _ Lane, _ *wire.Header, f *buffer.Frame) {
			if f != nil {
				f.Release()
			}
			if received.Add(1) == goal.Load() {
				reached <- struct{}{}
			}
		}
	})
	meet(from, to)
	within(b, "up", from.up)
	within(b, "up", to.up)
	return from, received, func(n int64) {
		goal.Store(n)
		if received.Load() < n {
			<-reached
		}
	}
}

// BenchmarkMesh sends frames from one member to another, as fast as the queue takes them. Compare with
// BenchmarkFloor of the same size.
func BenchmarkMesh(b *testing.B) {
	for _, c := range sizes {
		b.Run(c.name, func(b *testing.B) {
			from, received, wait := benchPair(b)
			head := prepareFrame(1, c.body)
			lane := Data(0)
			var owner *buffer.Frame
			var body []byte
			if c.body == 0 {
				head, lane = commitFrame(1), Control
			} else {
				owner, _ = from.pool.Try(c.body)
				body = owner.Bytes()
				defer owner.Release()
			}
			b.ReportAllocs()
			b.SetBytes(int64(wire.HeaderSize + c.body))
			b.ResetTimer()
			for n := int64(1); n <= int64(b.N); n++ {
				for !from.mesh.Send(2, lane, head, body, owner) {
					wait((received.Load() + n) / 2) // not for each single one
				}
			}
			wait(int64(b.N))
		})
	}
}

var sizes = []struct {
	name string
	body int
}{{"256B", 0}, {"1KiB", 1 << 10}, {"64KiB", 64 << 10}, {"1MiB", 1 << 20}}

// BenchmarkFloor writes the same bytes to a raw socket, 64 KiB or one frame at a time, and reads them on the
// other side.
func BenchmarkFloor(b *testing.B) {
	for _, c := range sizes {
		b.Run(c.name, func(b *testing.B) {
			size := wire.HeaderSize + c.body
			got := make(chan int64, 1)
			address := serve(b, func(l net.Listener) error {
				conn, err := l.Accept()
				if err != nil {
					return nil
				}
				defer conn.Close()
				n, _ := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{conn}, make([]byte, max(64<<10, size)))
				got <- n
				return nil
			})
			conn, err := net.Dial("tcp", address)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.SetBytes(int64(size))
			b.ResetTimer()
			buf := make([]byte, max(64<<10/size, 1)*size)
			for left := b.N * size; left > 0; left -= len(buf) {
				if _, err := conn.Write(buf[:min(left, len(buf))]); err != nil {
					b.Fatal(err)
				}
			}
			conn.Close()
			if n := <-got; n != int64(b.N)*int64(size) {
				b.Fatalf("%d bytes arrived", n)
			}
		})
	}
}

// BenchmarkCall is one caller that waits for each answer, and a number of callers.
func BenchmarkCall(b *testing.B) {
	p := newPlane(b, serviceFunc(func(c *Call) {
		c.ReplyOp = wire.OpSendMessages
		c.Out = append(c.Out[:0], "confirmation"...)
		c.Finish()
	}))
	call := func(c *Call, frame *buffer.Frame) {
		out := c.Out
		c.Reset()
		c.Out = out[:0]
		c.Header.Operation, c.Frame, c.Body, c.BodyStart = wire.OpSendMessages, frame, frame.Bytes()[256:], 256
		p.remote.Serve(c)
		<-c.Done()
		if c.Status != 0 {
			b.Errorf("status %v, reason %d", c.Status, c.Reason)
		}
	}
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		frame, _ := p.ours.Try(256 + 1024)
		defer frame.Release()
		for c := NewCall(); b.Loop(); {
			call(c, frame)
		}
	})
	b.Run("many", func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			frame, _ := p.ours.Try(256 + 1024)
			defer frame.Release()
			for c := NewCall(); pb.Next(); {
				call(c, frame)
			}
		})
	})
}

// TestFramesAllocateNothing: once the queues have grown, neither side allocates for a frame or a call.
func TestFramesAllocateNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("runs benchmarks")
	}
	mesh := testing.Benchmark(func(b *testing.B) {
		from, received, wait := benchPair(b)
		head, body := prepareFrame(1, 500), make([]byte, 500)
		b.ResetTimer()
		for n := int64(1); n <= int64(b.N); n++ {
			for !from.mesh.Send(2, Data(0), head, body, nil) {
				wait((received.Load() + n) / 2) // not for each single one
			}
		}
		wait(int64(b.N))
	})
	if n := float64(mesh.MemAllocs) / float64(mesh.N); n > 0.1 {
		t.Errorf("%.2f allocations for a frame of the mesh", n)
	}
	p := newPlane(t, serviceFunc(func(c *Call) { c.Finish() }))
	c := NewCall()
	calls := testing.AllocsPerRun(2000, func() {
		c.Reset()
		c.Header.Operation = wire.OpStoreOffset
		p.remote.Serve(c)
		<-c.Done()
	})
	if calls > 0 {
		t.Errorf("%v allocations for a call", calls)
	}
}
