package cluster

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/placement"
	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/bench/verify"
	"github.com/whippet-mq/whippet/tools/client"
	"github.com/whippet-mq/whippet/tools/local"
)

// where asks for the state of the cluster.
func where(t *testing.T, c *client.Client) *placement.Cluster {
	t.Helper()
	at, err := c.Place(placement.Command{Do: placement.DoStatus})
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// placed waits until every partition rests where it should.
func placed(t *testing.T, c *client.Client, moves []placement.Move) {
	t.Helper()
	await(t, "everything has moved", func() bool {
		at := where(t, c)
		return !slices.ContainsFunc(at.Partitions, func(p placement.Partition) bool {
			return !p.Resting() || slices.ContainsFunc(moves, func(m placement.Move) bool {
				q := m.Partition
				return q.Stream == p.Stream && q.Topic == p.Topic && q.ID == p.ID && !slices.Equal(m.To, p.Members)
			})
		})
	})
}

// TestMove moves one partition by hand while somebody writes to it: away from one node, to another order, and away
// from all nodes that held it. No write fails, and every message is where it was acknowledged.
func TestMove(t *testing.T) {
	if testing.Short() {
		t.Skip("starts clusters of processes")
	}
	t.Parallel()
	c := start(t, local.Plan{Metadata: 3, Partition: 6, FrontDoor: 2})
	addresses := doorAddresses(c)
	admin := connect(t, addresses[0])
	if _, err := admin.CreateStream("s"); err != nil {
		t.Fatal(err)
	}
	stream, topic := wire.NamedID("s"), wire.NamedID("t")
	if _, err := admin.CreateTopic(wire.CreateTopicRequest{Stream: stream, PartitionsCount: 1, Name: []byte("t")}); err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan uint64)
	go func() {
		writer := connect(t, addresses[1])
		next := uint64(0)
		defer func() { done <- next }()
		for {
			select {
			case <-stop:
				return
			default:
			}
			var b client.Batch
			b.Reset(1)
			b.Add(wire.U128{Lo: next + 1}, make([]byte, 1000), nil)
			at, err := writer.Send(stream, topic, wire.Partitioning{Kind: wire.PartitioningPartition}, b.Seal())
			if err != nil || at.BaseOffset != next {
				t.Errorf("message %d at %d: %v", next, at.BaseOffset, err)
				return
			}
			next++
		}
	}()
	members := func() []int { return where(t, admin).Partitions[0].Members }
	outside := func(in []int) (list []int) {
		for _, n := range where(t, admin).Nodes {
			if !slices.Contains(in, n.ID) {
				list = append(list, n.ID)
			}
		}
		return list
	}
	first := members()
	others := outside(first)
	for _, to := range [][]int{
		{first[1], first[2], others[0]},
		{others[0], first[1], first[2]},
		{others[1], others[2], first[0]},
	} {
		at := where(t, admin).Partitions[0]
		started := time.Now()
		if _, err := admin.Place(placement.Command{Do: placement.DoMove, Group: at.Group, Members: to}); err != nil {
			t.Fatalf("%v to %v: %v", at.Members, to, err)
		}
		placed(t, admin, []placement.Move{{Partition: at, To: to}})
		t.Logf("%v to %v took %v", at.Members, to, time.Since(started))
	}
	close(stop)
	written := <-done
	reader := connect(t, addresses[0])
	read := uint64(0)
	for read < written {
		poll, err := reader.Poll(wire.PollMessagesRequest{
			Consumer: wire.Consumer{Kind: wire.ConsumerSingle, ID: wire.NumericID(1)}, Stream: stream, Topic: topic,
			Partition: wire.SelectPartition(0), Strategy: wire.Strategy{Kind: wire.StrategyOffset, Value: read}, Count: 1000,
		})
		if err != nil || poll.MessagesCount == 0 {
			t.Fatalf("%d of %d messages, then %d: %v", read, written, poll.MessagesCount, err)
		}
		read += uint64(poll.MessagesCount)
	}
	t.Logf("%d messages", written)
}

// TestMoveKilled moves partitions to and fro under mixed load while one process after the other is killed, whatever step the
// moves are at. They end all the same, and everything that was acknowledged is there.
func TestMoveKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("starts clusters of processes")
	}
	t.Parallel()
	c := start(t, local.Plan{Metadata: 3, Partition: 5, FrontDoor: 2})
	admin := connect(t, doorAddresses(c)[0])
	l := load(t, c, verify.Options{MaxPayload: 64 << 10, Topics: 2})
	moved := 0
	for _, m := range c.Members {
		if m.Role == local.FrontDoor {
			continue
		}
		for _, p := range where(t, admin).Partitions {
			nodes := l.random.Perm(len(where(t, admin).Nodes))
			var to []int
			for _, i := range nodes[:3] {
				to = append(to, where(t, admin).Nodes[i].ID)
			}
			_, err := admin.Place(placement.Command{Do: placement.DoMove, Group: p.Group, Members: to})
			if err == nil {
				moved++
			} else if !errors.Is(err, client.ErrRefused) { // it moves already, or a node is away
				t.Fatal(err)
			}
		}
		l.pause(400)
		if err := c.Kill(m); err != nil {
			t.Fatal(err)
		}
		l.pause(1500)
		again(t, c, m)
	}
	placed(t, admin, nil)
	l.check(t)
	t.Logf("%d moves, %d messages acknowledged", moved, l.ledger.Model.Acknowledged())
	if moved == 0 {
		t.Error("nothing moved")
	}
}
