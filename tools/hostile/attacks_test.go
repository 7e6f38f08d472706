package hostile

import (
	"encoding/binary"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
)

const (
	memoryLimit  = 128 << 20
	frameTimeout = 2 * time.Second
)

// heap is what the whole process may take under a limit on its buffers: the documented aim of the
// garbage collector, and a little that it does not count (stacks of the system, code).
const heap = 2*memoryLimit + 256<<20 + 64<<20

// TestBadClients runs one attack after the other on one server. During each, good clients go on.
func TestBadClients(t *testing.T) {
	s := start(t, map[string]string{
		"WHIPPET_LIMITS_MEMORY": "128 MiB", "WHIPPET_LIMITS_FRAME_TIMEOUT": "2 s",
	})
	crowd := gather(t, s)
	crowd.lap() // the first requests pay for connections and files
	before, _ := crowd.lap()
	t.Logf("%-22s p99 %8v                      RSS %3d MiB", "nobody bad", before.Round(time.Millisecond/100), s.memory("VmRSS")>>20)
	for _, attack := range []struct {
		name string
		run  func(s server)
	}{
		{"random bytes", randomBytes},
		{"half frames", halfFrames},
		{"one byte at a time", slowLoris},
		{"wrong sizes", wrongSizes},
		{"every command", everyCommand},
		{"every operation", everyOperation},
		{"unknown codes", unknownCodes},
		{"announced and withheld", withheldFrames},
		{"announced, logged in", withheldBySessions},
		{"headers without end", headerFlood},
		{"nobody reads", stalledReaders},
		{"10 000 connections", manyConnections},
	} {
		t.Run(attack.name, func(t *testing.T) {
			attacked := server{s.Server, t}
			crowd.server.t = t
			attack.run(attacked)
			during, count := crowd.lap()
			t.Logf("%-22s p99 %8v (x%5.1f, %5d pairs)  RSS %3d MiB, at most %3d MiB", attack.name,
				during.Round(time.Millisecond/100), float64(during)/float64(before), count, attacked.memory("VmRSS")>>20, attacked.memory("VmHWM")>>20)
			if limit := max(100*before, 2*time.Second); during > limit {
				t.Errorf("p99 of good clients is %v, before %v", during, before)
			}
			if most := attacked.memory("VmHWM"); most > heap {
				t.Errorf("the process took %d MiB", most>>20)
			}
			if !attacked.Alive() {
				t.Fatalf("the server is gone:\n%s", attacked.LastWords())
			}
		})
		if t.Failed() {
			return
		}
	}
	crowd.server.t = t
	crowd.disperse()
	if err := s.Restart(true); err != nil {
		t.Fatal(err)
	}
	crowd.verify()
}

// each runs f for every number below n, a few at a time, and waits.
func each(n int, f func(i int)) {
	var group sync.WaitGroup
	turns := make(chan int)
	for range 64 {
		group.Go(func() {
			for i := range turns {
				f(i)
			}
		})
	}
	for i := range n {
		turns <- i
	}
	close(turns)
	group.Wait()
}

func randomBytes(s server) {
	each(200, func(i int) {
		random := rand.NewChaCha8([32]byte{byte(i)})
		noise := make([]byte, 64<<10)
		_, _ = random.Read(noise)
		r := s.raw()
		_, _ = r.Write(noise)
		r.ended("random bytes", answerTime)
	})
}

// halfFrames stop anywhere and keep the connection.
func halfFrames(s server) {
	body := make([]byte, 8000)
	whole := frame(wire.RequestHeader{Operation: wire.OpNonReplicated, Code: wire.CmdPing}, body)
	conns := make([]*raw, 300)
	for i := range conns {
		conns[i] = s.raw()
		_, _ = conns[i].Write(whole[:1+i*len(whole)/(len(conns)+1)])
	}
	for _, r := range conns {
		r.ended("half a frame", answerTime)
	}
}

func slowLoris(s server) {
	whole := frame(wire.RequestHeader{Operation: wire.OpNonReplicated, Code: wire.CmdPing}, nil)
	var conns []*raw
	for range 500 {
		conns = append(conns, s.raw())
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	begun := time.Now()
	for i := 0; i < len(whole) && time.Since(begun) < frameTimeout+time.Second; i++ {
		<-tick.C
		for _, r := range conns {
			_, _ = r.Write(whole[i : i+1])
		}
	}
	for _, r := range conns {
		r.ended("one byte at a time", answerTime)
	}
}

func wrongSizes(s server) {
	for _, size := range []uint32{0, 1, 255, wire.MaxFrameSize + 1, 1 << 31, 1<<32 - 1} {
		each(20, func(int) {
			r := s.raw()
			_, _ = r.Write(announcing(wire.RequestHeader{Operation: wire.OpNonReplicated, Code: wire.CmdPing}, size))
			r.ended("wrong size", answerTime)
		})
	}
}

// announcing is a header that claims size bytes.
func announcing(h wire.RequestHeader, size uint32) []byte {
	b := frame(h, nil)
	binary.LittleEndian.PutUint32(b[48:], size)
	return b
}

// everyCommand is answered, or ends the connection when no frame has that command.
func everyCommand(s server) {
	each(256, func(i int) {
		r := s.raw()
		b := frame(wire.RequestHeader{Operation: wire.OpNonReplicated, Code: wire.CmdPing}, nil)
		b[60] = byte(i)
		if wire.Command(i).Known() {
			r.answered(wire.Command(i).String(), b)
			return
		}
		_, _ = r.Write(b)
		r.ended("an unknown command", answerTime)
	})
}

// everyOperation is answered, with a session and without, with and without a body.
func everyOperation(s server) {
	each(256, func(i int) {
		op := wire.Operation(i)
		for _, body := range [][]byte{nil, make([]byte, 100), []byte("\xff\xff\xff\xff\xff\xff\xff\xff")} {
			stranger := s.raw()
			stranger.answered(op.String(), stranger.ask(op, wire.CmdPing, body))
			stranger.Close()
			member := s.authenticated()
			member.answered(op.String(), member.ask(op, wire.CmdPing, body))
			member.Close()
		}
	})
}

func unknownCodes(s server) {
	each(8, func(i int) {
		r := s.authenticated()
		random := rand.New(rand.NewPCG(1, uint64(i)))
		for n := range 500 {
			code := wire.Cmd(random.Uint32N(1000))
			if n%2 == 0 {
				code = wire.Cmd(random.Uint32())
			}
			if code == wire.CmdGetSnapshot {
				continue // takes a while when it is meant
			}
			body := make([]byte, random.IntN(40))
			for j := range body {
				body[j] = byte(random.Uint32())
			}
			r.answered(code.String(), r.ask(wire.OpNonReplicated, code, body))
		}
	})
}

// withheldFrames announce all a frame may have and send no byte of it. No session, so no promise.
func withheldFrames(s server) {
	each(2000, func(i int) {
		op := wire.OpSendMessages
		if i%2 == 0 {
			op = wire.OpNonReplicated
		}
		r := s.raw()
		_, _ = r.Write(announcing(wire.RequestHeader{Operation: op, Session: 1, Request: 1}, wire.MaxFrameSize))
	})
}

// withheldBySessions does the same after a login.
func withheldBySessions(s server) {
	each(64, func(i int) {
		r := s.authenticated()
		_, _ = r.Write(announcing(wire.RequestHeader{Operation: wire.OpSendMessages, Session: r.session, Request: 1}, wire.MaxFrameSize))
	})
}

// headerFlood sends requests as fast as they go and reads no answer.
func headerFlood(s server) {
	var bundle []byte
	for range 256 {
		bundle = append(bundle, frame(wire.RequestHeader{Operation: wire.OpNonReplicated, Code: wire.CmdPing}, nil)...)
	}
	each(64, func(int) {
		r := s.raw()
		r.SetWriteDeadline(time.Now().Add(2 * time.Second))
		for range 64 {
			if _, err := r.Write(bundle); err != nil {
				return
			}
		}
	})
}

// stalledReaders ask for the largest answers and take none.
func stalledReaders(s server) {
	c := s.connect()
	if _, err := c.CreateTopic(wire.CreateTopicRequest{Stream: stream, Name: []byte("large"), PartitionsCount: 1}); err != nil {
		s.t.Fatal(err)
	}
	large := wire.NamedID("large")
	for range 10 {
		if _, err := c.Send(stream, large, partition(0), sealed(make([]byte, 1<<20))); err != nil {
			s.t.Fatal(err)
		}
	}
	q := pollFrom(0, 0, 1000)
	q.Topic = large
	each(64, func(int) {
		r := s.authenticated()
		_ = r.Conn.(*net.TCPConn).SetReadBuffer(4096)
		r.SetWriteDeadline(time.Now().Add(time.Second))
		for range 16 {
			if _, err := r.Write(r.ask(wire.OpNonReplicated, wire.CmdPollMessages, q.Append(nil))); err != nil {
				return
			}
		}
	})
}

// manyConnections are ten thousand at once; half of them send half a header, and all stay.
func manyConnections(s server) {
	const count = 10_000
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		s.t.Fatal(err)
	}
	if limit.Max < count+500 {
		s.t.Skipf("this process may have %d descriptors only", limit.Max)
	}
	limit.Cur = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		s.t.Fatal(err)
	}
	ping := frame(wire.RequestHeader{Operation: wire.OpNonReplicated, Code: wire.CmdPing}, nil)
	conns := make([]*raw, count)
	begun := time.Now()
	each(count, func(i int) {
		conns[i] = s.raw()
		if i%2 == 0 {
			_, _ = conns[i].Write(ping[:100])
		}
	})
	each(count, func(i int) {
		if i%2 == 1 {
			conns[i].answered("one of many", ping)
		}
	})
	s.t.Logf("%d connections after %v", count, time.Since(begun).Round(time.Millisecond))
	each(count, func(i int) {
		if i%2 == 0 {
			conns[i].ended("half a header", answerTime)
		}
	})
	for _, r := range conns {
		r.Close()
	}
}
