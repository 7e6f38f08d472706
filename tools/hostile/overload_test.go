package hostile

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
)

// TestW12LoginStorm: two hundred clients of four accounts log in at once. All get in, and those who
// are in already notice little: passwords are hashed elsewhere.
func TestW12LoginStorm(t *testing.T) {
	s := start(t, nil)
	crowd := gather(t, s)
	crowd.lap()
	before, _ := crowd.lap()
	c := s.connect()
	accounts := []string{"first", "second", "third", "fourth"}
	for _, name := range accounts {
		q := wire.CreateUserRequest{Username: []byte(name), Password: []byte("password"), Status: wire.UserActive}
		if _, err := c.CreateUser(q); err != nil {
			t.Fatal(err)
		}
	}
	var group sync.WaitGroup
	var slowest atomic.Int64
	begun := time.Now()
	for i := range 200 {
		group.Go(func() {
			conn, err := client.Dial(context.Background(), client.Options{
				Address: s.Address(), Username: accounts[i%len(accounts)], Password: "password", RetryFor: -1,
			})
			if err != nil {
				t.Errorf("login %d: %v", i, err)
				return
			}
			defer conn.Close()
			if err := conn.Ping(); err != nil {
				t.Errorf("login %d: %v", i, err)
			}
			longest(&slowest, time.Since(begun))
		})
	}
	group.Wait()
	during, _ := crowd.lap()
	t.Logf("200 logins in %v; p99 of good clients %v, before %v", time.Duration(slowest.Load()).Round(time.Millisecond), during, before)
	if limit := max(50*before, time.Second); during > limit {
		t.Errorf("p99 of good clients is %v, before %v", during, before)
	}
}

func longest(a *atomic.Int64, d time.Duration) {
	for {
		old := a.Load()
		if int64(d) <= old || a.CompareAndSwap(old, int64(d)) {
			return
		}
	}
}

// TestW15Overload: a thousand connections have a batch of 1 MiB outstanding each, all for one
// partition, eight times what the server may keep. Each is answered, stored or refused for now, the
// refused ones are stored in the end, and the memory holds.
func TestW15Overload(t *testing.T) {
	if testing.Short() {
		t.Skip("writes a gigabyte")
	}
	s := start(t, map[string]string{"WHIPPET_LIMITS_MEMORY": "128 MiB"})
	s.topic(1)
	const producers = 1000
	conns := make([]*client.Client, producers)
	each(producers, func(i int) { conns[i] = s.connect() })
	batch := sealed(make([]byte, 1<<20))
	var refused, slowest atomic.Int64
	offsets := make([]uint64, producers)
	var group sync.WaitGroup
	begun := time.Now()
	for i, c := range conns {
		group.Go(func() {
			for {
				asked := time.Now()
				at, err := c.Send(stream, topic, partition(0), batch)
				longest(&slowest, time.Since(asked))
				if err == nil {
					offsets[i] = at.BaseOffset
					return
				}
				if err != wire.CodeTransientNotAccepted || time.Since(begun) > 2*time.Minute {
					t.Errorf("client %d: %v", i, err)
					return
				}
				refused.Add(1)
			}
		})
	}
	group.Wait()
	t.Logf("%d batches of 1 MiB in %v, %d refusals before that, slowest answer %v, RSS at most %d MiB", producers,
		time.Since(begun).Round(time.Millisecond), refused.Load(), time.Duration(slowest.Load()).Round(time.Millisecond), s.memory("VmHWM")>>20)
	if most := s.memory("VmHWM"); most > heap {
		t.Errorf("the process took %d MiB", most>>20)
	}
	if t.Failed() {
		return
	}
	seen := make([]bool, producers)
	for i, at := range offsets {
		if at >= producers || seen[at] {
			t.Fatalf("client %d is at offset %d of %d messages", i, at, producers)
		}
		seen[at] = true
	}
	if err := s.connect().Ping(); err != nil {
		t.Error(err)
	}
}

// TestW15Refusals: what exceeds the pipeline of a partition is answered, not dropped. A client that
// asks ahead of the answers gets all of them, in order.
func TestW15Refusals(t *testing.T) {
	s := start(t, nil)
	s.topic(1)
	const producers, ahead = 64, 32
	body := append(wire.SendMessagesRequest{Stream: stream, Topic: topic, Partitioning: partition(0), MessagesCount: 1}.AppendRouting(nil), sealed([]byte("x"))...)
	var slowest atomic.Int64
	faults := make(chan error, producers)
	each(producers, func(i int) {
		r := s.authenticated()
		var bundle []byte
		for n := range uint64(ahead) {
			r.request = n + 1
			bundle = append(bundle, r.ask(wire.OpSendMessages, 0, body)...)
		}
		asked := time.Now()
		if _, err := r.Write(bundle); err != nil {
			faults <- err
			return
		}
		for n := range uint64(ahead) {
			answer, err := r.receive()
			if err != nil {
				faults <- fmt.Errorf("client %d, answer %d: %w", i, n, err)
				return
			}
			var h wire.ReplyHeader
			if err := h.Decode(answer); err != nil || h.Request != n+1 || h.Status != 0 && !h.Status.IsTransient() {
				faults <- fmt.Errorf("client %d, answer %d: request %d, status %v, %v", i, n, h.Request, h.Status, err)
				return
			}
			longest(&slowest, time.Since(asked))
			asked = time.Now()
		}
	})
	close(faults)
	for err := range faults {
		t.Error(err)
	}
	t.Logf("%d requests answered, slowest answer %v", producers*ahead, time.Duration(slowest.Load()))
}
