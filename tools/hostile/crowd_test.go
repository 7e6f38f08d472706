package hostile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/tools/client"
)

func isErrno(err error, want syscall.Errno) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && errno == want
}

// crowd are the good clients: each has a partition to itself, sends a message, polls it back and
// does so again at the next tick.
type crowd struct {
	server server
	stop   chan struct{}
	group  sync.WaitGroup

	mu    sync.Mutex
	took  []time.Duration // a send and a poll, since the last lap
	fault error           // the first one
	sent  []uint64        // acknowledged messages per partition
}

const (
	crowdSize  = 4
	crowdPause = 5 * time.Millisecond
)

// gather starts the good clients on a new topic.
func gather(t testing.TB, s server) *crowd {
	s.topic(crowdSize)
	c := &crowd{server: s, stop: make(chan struct{}), sent: make([]uint64, crowdSize)}
	for i := range uint32(crowdSize) {
		conn := s.connect()
		c.group.Go(func() { c.work(conn, i) })
	}
	t.Cleanup(c.disperse)
	return c
}

// disperse ends them.
func (c *crowd) disperse() {
	select {
	case <-c.stop:
	default:
		close(c.stop)
	}
	c.group.Wait()
}

func (c *crowd) work(conn *client.Client, part uint32) {
	tick := time.NewTicker(crowdPause)
	defer tick.Stop()
	for n := uint64(0); ; n++ {
		select {
		case <-c.stop:
			return
		case <-tick.C:
		}
		begun := time.Now()
		err := exchange(conn, part, n)
		c.mu.Lock()
		c.took = append(c.took, time.Since(begun))
		c.sent[part] = n + 1
		if err != nil && c.fault == nil {
			c.fault = fmt.Errorf("partition %d, message %d, after %v: %w", part, n, time.Since(begun), err)
		}
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// message is what stands at an offset of a good client's partition.
func message(part uint32, n uint64) []byte {
	b := bytes.Repeat([]byte{byte(part)}, 100)
	binary.LittleEndian.PutUint64(b, n)
	return b
}

func exchange(conn *client.Client, part uint32, n uint64) error {
	at, err := conn.Send(stream, topic, partition(part), sealed(message(part, n)))
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	if at.BaseOffset != n {
		return fmt.Errorf("stored at %d", at.BaseOffset)
	}
	return find(conn, part, n)
}

// find polls one message and compares it.
func find(conn *client.Client, part uint32, n uint64) error {
	polled, err := conn.Poll(pollFrom(part, n, 1))
	if err != nil {
		return fmt.Errorf("poll: %w", err)
	}
	found := 0
	for m, err := range polled.Messages(true) {
		if err != nil {
			return err
		}
		if found++; m.Offset != n || !bytes.Equal(m.Payload, message(part, n)) {
			return fmt.Errorf("polled offset %d, payload %x", m.Offset, m.Payload[:8])
		}
	}
	if found != 1 {
		return fmt.Errorf("%d messages instead of one", found)
	}
	return nil
}

// lap returns the 99th percentile since the last lap and the number of exchanges in it; there are
// at least enough of them for that.
func (c *crowd) lap() (p99 time.Duration, count int) {
	c.server.t.Helper()
	deadline := time.Now().Add(answerTime)
	for poll := time.NewTicker(20 * time.Millisecond); ; <-poll.C {
		c.mu.Lock()
		count = len(c.took)
		fault := c.fault
		if count >= 200 || fault != nil || time.Now().After(deadline) {
			break
		}
		c.mu.Unlock()
	}
	defer c.mu.Unlock()
	if c.fault != nil {
		c.server.t.Fatalf("a good client met an error: %v\n%s", c.fault, c.server.LastWords())
	}
	if count < 200 {
		c.server.t.Fatalf("good clients came to %d exchanges in %v", count, answerTime)
	}
	slices.Sort(c.took)
	p99 = c.took[count*99/100]
	c.took = c.took[:0]
	return p99, count
}

// verify wants every acknowledged message.
func (c *crowd) verify() {
	c.server.t.Helper()
	conn := c.server.connect()
	defer conn.Close()
	for part, sent := range c.sent {
		for n := uint64(0); n < sent; n += max(1, sent/500) {
			if err := find(conn, uint32(part), n); err != nil {
				c.server.t.Fatalf("partition %d, message %d of %d: %v", part, n, sent, err)
			}
		}
	}
}
