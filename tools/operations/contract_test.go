package operations

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
)

// The tests of this file are rows of deploy/docs/faults.md, each on a real process.

var (
	single = wire.Consumer{Kind: wire.ConsumerSingle, ID: wire.NumericID(7)}
	here   = wire.OffsetTarget{Consumer: single, Stream: stream, Topic: topic, Partition: wire.SelectPartition(0)}
	group  = wire.GroupTarget{Stream: stream, Topic: topic, Group: wire.NamedID("team")}
)

// eventually waits for a condition, which is asked again and again.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	limit := time.After(30 * time.Second)
	for !holds() {
		select {
		case <-limit:
			t.Fatalf("never: %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func code(err error) wire.Code {
	var c wire.Code
	errors.As(err, &c)
	return c
}

// next polls what the consumer has not seen and commits it on the server.
func next(t *testing.T, c *client.Client, count uint32) (offsets []uint64) {
	t.Helper()
	polled, err := c.Poll(wire.PollMessagesRequest{
		Consumer: single, Stream: stream, Topic: topic, Partition: wire.SelectPartition(0), Strategy: wire.Strategy{Kind: wire.StrategyNext}, Count: count, AutoCommit: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	for m, err := range polled.Messages(true) {
		if err != nil {
			t.Fatal(err)
		}
		offsets = append(offsets, m.Offset)
	}
	return offsets
}

// After a restart "next" goes on exactly where the stored offset stands, also while others produce.
func TestNextContinuesAfterRestart(t *testing.T) {
	for _, kill := range []bool{false, true} {
		t.Run(fmt.Sprintf("kill=%v", kill), func(t *testing.T) {
			s := start(t, t.TempDir(), nil)
			c := s.connect("iggy", "iggy")
			fill(t, c, 50)
			if got := next(t, c, 20); len(got) != 20 {
				t.Fatalf("got %d messages", len(got))
			}
			send(t, c, 1) // acknowledged, so what the poll put into the log before it is there too
			if err := s.Restart(kill); err != nil {
				t.Fatal(err)
			}
			c = s.connect("iggy", "iggy")
			send(t, c, 9)
			for want := uint64(20); want < 60; {
				got := next(t, c, 7)
				if len(got) == 0 {
					t.Fatalf("nothing after offset %d", want)
				}
				for _, offset := range got {
					if offset != want {
						t.Fatalf("offset %d, want %d", offset, want)
					}
					want++
				}
			}
		})
	}
}

// send appends n more messages of one byte to partition 0.
func send(t *testing.T, c *client.Client, n int) wire.Confirmation {
	t.Helper()
	var batch client.Batch
	batch.Reset(1)
	for range n {
		batch.Add(wire.U128{}, []byte{'x'}, nil)
	}
	confirmed, err := c.Send(stream, topic, wire.Partitioning{Kind: wire.PartitioningPartition}, batch.Seal())
	if err != nil {
		t.Fatal(err)
	}
	return confirmed
}

// Purging a topic leaves the others of its stream alone.
func TestPurgeCountsItsTopicOnly(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	c := s.connect("iggy", "iggy")
	fill(t, c, 10)
	if _, err := c.CreateTopic(wire.CreateTopicRequest{Stream: stream, Name: []byte("other"), PartitionsCount: 1}); err != nil {
		t.Fatal(err)
	}
	var batch client.Batch
	batch.Reset(1)
	batch.Add(wire.U128{}, []byte("kept"), nil)
	if _, err := c.Send(stream, wire.NamedID("other"), wire.Partitioning{Kind: wire.PartitioningPartition}, batch.Seal()); err != nil {
		t.Fatal(err)
	}
	if err := c.PurgeTopic(stream, topic); err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		details, err := c.Stream(stream)
		if err != nil || details.MessagesCount != 1 {
			t.Errorf("the stream counts %d messages, %v; want 1", details.MessagesCount, err)
		}
		for _, record := range details.Topics {
			if want := map[string]uint64{"events": 0, "other": 1}[record.Name]; record.MessagesCount != want {
				t.Errorf("topic %s counts %d messages, want %d", record.Name, record.MessagesCount, want)
			}
		}
	}
	check()
	if err := s.Restart(true); err != nil {
		t.Fatal(err)
	}
	c = s.connect("iggy", "iggy")
	check()
	if confirmed := send(t, c, 1); confirmed.BaseOffset != 0 {
		t.Errorf("the purged partition goes on at %d, want 0", confirmed.BaseOffset)
	}
}

// What is created again under an old name starts from nothing.
func TestNamesDoNotInherit(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	c := s.connect("iggy", "iggy")
	fill(t, c, 10)
	member := wire.OffsetTarget{Consumer: wire.Consumer{Kind: wire.ConsumerGroup, ID: wire.NamedID("team")}, Stream: stream, Topic: topic, Partition: wire.SelectPartition(0)}
	stored := func(target wire.OffsetTarget) (uint64, bool) {
		o, err := c.Offset(target)
		return o.StoredOffset, err == nil
	}
	for round := range 2 {
		if _, err := c.CreateGroup(wire.CreateGroupRequest{Stream: stream, Topic: topic, Name: []byte("team")}); err != nil {
			t.Fatal(err)
		}
		if offset, ok := stored(member); ok {
			t.Errorf("round %d: a new group already has offset %d", round, offset)
		}
		if err := c.JoinGroup(group); err != nil {
			t.Fatal(err)
		}
		if err := c.StoreOffset(wire.StoreOffsetRequest{OffsetTarget: member, Offset: 5}); err != nil {
			t.Fatal(err)
		}
		if offset, ok := stored(member); !ok || offset != 5 {
			t.Errorf("round %d: stored %d %v, want 5", round, offset, ok)
		}
		if err := c.DeleteGroup(group); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.StoreOffset(wire.StoreOffsetRequest{OffsetTarget: here, Offset: 5}); err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteTopic(stream, topic); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateTopic(wire.CreateTopicRequest{Stream: stream, Name: []byte("events"), PartitionsCount: 1}); err != nil {
		t.Fatal(err)
	}
	if offset, ok := stored(here); ok {
		t.Errorf("a new topic already has a stored offset, %d", offset)
	}
	if got := next(t, c, 10); len(got) != 0 {
		t.Errorf("a new topic has messages: %v", got)
	}
	if confirmed := send(t, c, 1); confirmed.BaseOffset != 0 {
		t.Errorf("a new topic starts at %d", confirmed.BaseOffset)
	}
}

// An offset that no message has is not stored, and new consumers are bounded in number.
func TestStoredOffsetsAreBounded(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	c := s.connect("iggy", "iggy")
	if _, err := c.CreateStream("first"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateTopic(wire.CreateTopicRequest{Stream: stream, Name: []byte("events"), PartitionsCount: 1}); err != nil {
		t.Fatal(err)
	}
	for _, offset := range []uint64{0, 1} {
		if err := c.StoreOffset(wire.StoreOffsetRequest{OffsetTarget: here, Offset: offset}); code(err) != wire.CodeInvalidOffset {
			t.Errorf("storing %d on an empty partition: %v", offset, err)
		}
	}
	send(t, c, 10)
	for offset, want := range map[uint64]wire.Code{9: 0, 3: 0, 10: wire.CodeInvalidOffset, 1010: wire.CodeInvalidOffset, 1 << 63: wire.CodeInvalidOffset} {
		if err := c.StoreOffset(wire.StoreOffsetRequest{OffsetTarget: here, Offset: offset}); code(err) != want {
			t.Errorf("storing %d: %v, want %v", offset, err, want)
		}
	}
	for consumer := uint32(100); ; consumer++ {
		target := here
		target.Consumer.ID = wire.NumericID(consumer)
		err := c.StoreOffset(wire.StoreOffsetRequest{OffsetTarget: target, Offset: 1})
		if code(err) == wire.CodeConsumerOffsetsLimitReached {
			break
		}
		if err != nil || consumer > 10_000 {
			t.Fatalf("consumer %d: %v", consumer, err)
		}
	}
	if err := c.StoreOffset(wire.StoreOffsetRequest{OffsetTarget: here, Offset: 4}); err != nil {
		t.Errorf("a known consumer at the limit: %v", err)
	}
}

// Tokens that expire disappear and hurt nobody, before and after a restart.
func TestExpiredTokens(t *testing.T) {
	s := start(t, t.TempDir(), map[string]string{"IGGY_PERSONAL_ACCESS_TOKEN_CLEANER_INTERVAL": "20 ms"})
	c := s.connect("iggy", "iggy")
	fill(t, c, 5)
	token, err := c.CreateToken("brief", uint64((200 * time.Millisecond).Microseconds()))
	if err != nil {
		t.Fatal(err)
	}
	lasting, err := c.CreateToken("lasting", 0)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the expired token is gone", func() bool {
		tokens, err := c.Tokens()
		return err == nil && len(tokens) == 1 && tokens[0].Name == "lasting"
	})
	login := func(token string) error {
		other, err := client.Dial(context.Background(), client.Options{Address: s.Address(), Token: token})
		if err == nil {
			other.Close()
		}
		return err
	}
	for round := range 2 {
		if login(token) == nil {
			t.Errorf("round %d: an expired token logs in", round)
		}
		if err := login(lasting); err != nil {
			t.Errorf("round %d: the other token: %v", round, err)
		}
		send(t, c, 1)
		if err := s.Restart(true); err != nil {
			t.Fatal(err)
		}
		c = s.connect("iggy", "iggy")
	}
}

// Producers whose clocks are years ahead do not keep messages for ever: age counts from the arrival.
func TestFutureTimestampsExpire(t *testing.T) {
	s := start(t, t.TempDir(), map[string]string{"IGGY_DATA_MAINTENANCE_MESSAGES_INTERVAL": "20 ms"})
	c := s.connect("iggy", "iggy")
	if _, err := c.CreateStream("first"); err != nil {
		t.Fatal(err)
	}
	number := func(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }
	options := wire.AppendOption(nil, wire.OptionMessageExpiry, wire.KindUint64, number(500_000))
	options = wire.AppendOption(options, wire.OptionSegmentSize, wire.KindUint64, number(wire.MinSegmentSize))
	if _, err := c.CreateTopic(wire.CreateTopicRequest{Stream: stream, Name: []byte("events"), PartitionsCount: 1, Options: options}); err != nil {
		t.Fatal(err)
	}
	payload := make([]byte, 256<<10)
	for range 8 {
		var batch client.Batch
		batch.Reset(uint64(time.Now().AddDate(10, 0, 0).UnixMicro()))
		batch.Add(wire.U128{}, payload, nil)
		if _, err := c.Send(stream, topic, wire.Partitioning{Kind: wire.PartitioningPartition}, batch.Seal()); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "old messages are gone", func() bool {
		polled, err := c.Poll(wire.PollMessagesRequest{
			Consumer: single, Stream: stream, Topic: topic, Partition: wire.SelectPartition(0), Strategy: wire.Strategy{Kind: wire.StrategyFirst}, Count: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		for m := range polled.Messages(true) {
			return m.Offset > 0
		}
		return true
	})
	if confirmed := send(t, c, 1); confirmed.BaseOffset != 8 {
		t.Errorf("offsets go on at %d, want 8", confirmed.BaseOffset)
	}
}

// Members that come, poll, leave and drop their connections, while topics come and go and cleaners
// run without a pause, leave a server that serves.
func TestChurn(t *testing.T) {
	s := start(t, t.TempDir(), map[string]string{
		"IGGY_DATA_MAINTENANCE_MESSAGES_INTERVAL": "1 ms", "IGGY_PERSONAL_ACCESS_TOKEN_CLEANER_INTERVAL": "1 ms", "IGGY_HEARTBEAT_INTERVAL": "50 ms",
	})
	root := s.connect("iggy", "iggy")
	fill(t, root, 100)
	if err := root.CreatePartitions(wire.PartitionsRequest{Stream: stream, Topic: topic, Count: 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := root.CreateGroup(wire.CreateGroupRequest{Stream: stream, Topic: topic, Name: []byte("team")}); err != nil {
		t.Fatal(err)
	}
	until, stop := context.WithTimeout(t.Context(), 2*time.Second)
	defer stop()
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for round := 0; until.Err() == nil; round++ {
				c, err := client.Dial(t.Context(), client.Options{Address: s.Address(), Username: "iggy", Password: "iggy"})
				if err != nil {
					t.Errorf("worker %d: %v", worker, err)
					return
				}
				// Any refusal is fine here; silence and a dead server are not.
				_ = c.JoinGroup(group)
				_, _ = c.Poll(wire.PollMessagesRequest{
					Consumer: wire.Consumer{Kind: wire.ConsumerGroup, ID: wire.NamedID("team")}, Stream: stream, Topic: topic,
					Strategy: wire.Strategy{Kind: wire.StrategyNext}, Count: 10, AutoCommit: true,
				})
				if round%2 == 0 {
					_ = c.LeaveGroup(group)
				}
				name := fmt.Sprintf("passing-%d", worker)
				_, _ = c.CreateTopic(wire.CreateTopicRequest{Stream: stream, Name: []byte(name), PartitionsCount: 3})
				_ = c.DeleteTopic(stream, wire.NamedID(name))
				c.Close()
			}
		})
	}
	all.Wait()
	eventually(t, "no member is left", func() bool {
		details, err := root.Group(group)
		return err == nil && len(details.Members) == 0
	})
	expect(t, s.connect("iggy", "iggy"), 100)
	if code, body := s.ops("/healthz"); code != 200 {
		t.Errorf("/healthz is %d %s", code, body)
	}
}
