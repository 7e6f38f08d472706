package compose

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/bench/verify"
	"github.com/whippet-mq/whippet/tools/client"
	"github.com/whippet-mq/whippet/tools/cluster/lanes"
)

// loaded is a project whose clients write down what was acknowledged, and others that notice gaps.
type loaded struct {
	*project
	ledger   *verify.Ledger
	recorder *verify.Recorder
	doors    []string
	shut     atomic.Int64 // index + 1 of the front-door that is not to be used
	admin    *client.Client
	streams  int
}

// load starts light mixed load through both front-doors, until the test ends. It is light so that what the
// lanes see is not its doing.
func (p *project) load() *loaded {
	p.t.Helper()
	l := &loaded{project: p, doors: p.doors()}
	seed := rand.Uint64()
	p.t.Logf("seed %d", seed)
	var turn atomic.Uint64
	o := verify.Options{
		Connect: client.Options{Username: "iggy", Password: password}, Seed: seed, Producers: 2, Members: 1, MaxPayload: 64 << 10,
		Address: func() string {
			at := turn.Add(1) % uint64(len(l.doors))
			if int64(at)+1 == l.shut.Load() {
				at++
			}
			return l.doors[at%uint64(len(l.doors))]
		},
	}
	l.admin = p.connect(l.doors[1])
	var err error
	if l.ledger, err = verify.Create(filepath.Join(p.t.TempDir(), "ledger"), seed); err != nil {
		p.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	if l.recorder, err = verify.NewRecorder(ctx, o, l.ledger); err != nil {
		stop()
		p.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { l.recorder.Run(ctx); close(done) }()
	p.t.Cleanup(func() { stop(); <-done; _ = l.ledger.Close() })
	return l
}

// check reads everything back while nothing is written.
func (l *loaded) check() {
	l.t.Helper()
	resume := l.recorder.Still()
	defer resume()
	summary, wrong, err := verify.Check(l.connect(l.doors[0]), l.ledger.Model)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, v := range append(wrong, l.recorder.Violations()...) {
		l.t.Error(v)
	}
	if l.ledger.Model.Acknowledged() == 0 {
		l.t.Error("nothing was acknowledged: the test tests nothing")
	}
	l.t.Log(summary)
}

// lanes are steady requests of each kind through both front-doors, on three partitions, so that each replica
// leads one as far as they are spread evenly.
func (l *loaded) lanes() *lanes.Lanes {
	l.t.Helper()
	l.streams++
	stream := fmt.Sprintf("lanes-%d", l.streams)
	if _, err := l.admin.CreateStream(stream); err != nil {
		l.t.Fatal(err)
	}
	all := lanes.New(client.Options{Username: "iggy", Password: password}, l.doors...)
	for i := range 3 {
		topic := fmt.Sprintf("t%d", i)
		if _, err := l.admin.CreateTopic(wire.CreateTopicRequest{Stream: wire.NamedID(stream), PartitionsCount: 1, Name: []byte(topic)}); err != nil {
			l.t.Fatal(err)
		}
		if err := lanes.Sends(stream, topic)(l.admin); err != nil {
			l.t.Fatal(err)
		}
		for door := range l.doors {
			all.Add("send", door, 10, lanes.Sends(stream, topic))
			all.Add("poll", door, 10, lanes.Polls(stream, topic))
		}
	}
	for door := range l.doors {
		all.Add("metadata", door, 10, lanes.Changes(fmt.Sprintf("%s-%d", stream, door)))
		all.Add("ping", door, 25, lanes.Pings)
	}
	return all
}

// sendAndPoll sends a message to a new topic of a stream and reads it back.
func (p *project) sendAndPoll(c *client.Client, stream string) {
	p.t.Helper()
	if _, err := c.CreateTopic(wire.CreateTopicRequest{Stream: wire.NamedID(stream), PartitionsCount: 1, Name: []byte("t")}); err != nil {
		p.t.Fatal(err)
	}
	if err := lanes.Sends(stream, "t")(c); err != nil {
		p.t.Error(err)
	}
	poll, err := c.Poll(wire.PollMessagesRequest{
		Consumer: wire.Consumer{Kind: wire.ConsumerSingle, ID: wire.NumericID(1)}, Stream: wire.NamedID(stream), Topic: wire.NamedID("t"),
		Partition: wire.SelectPartition(0), Strategy: wire.Strategy{Kind: wire.StrategyOffset}, Count: 10,
	})
	if err != nil || poll.MessagesCount != 1 {
		p.t.Errorf("%d messages, %v", poll.MessagesCount, err)
	}
}

// elapse lets a cluster go on for a while.
func elapse(d time.Duration) {
	time.Sleep(d) // how long something goes on is the point of the test
}
