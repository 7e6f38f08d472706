package cluster

import (
	"errors"
	"flag"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
)

var (
	producers     = flag.Int("producers", 100, "TestManyProducers: connections that send small batches to one partition")
	producersTime = flag.Duration("producers-time", time.Second, "TestManyProducers: for so long")
)

// TestManyProducers has many connections send small batches to one partition as fast as answers come, and shows
// whether all get on alike. Refusals are for a machine that has no time for them.
func TestManyProducers(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster of processes")
	}
	c := start(t, services)
	d := doorAddresses(c)
	admin := connect(t, d[0])
	if _, err := admin.CreateStream("s"); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.CreateTopic(wire.CreateTopicRequest{Stream: wire.NamedID("s"), PartitionsCount: 1, Name: []byte("t")}); err != nil {
		t.Fatal(err)
	}
	all := make([]*producer, *producers)
	for i := range all {
		one, err := client.Dial(t.Context(), client.Options{Address: d[i%len(d)], Username: "iggy", Password: "iggy", RetryFor: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer one.Close()
		all[i] = &producer{client: one}
	}
	used, begun := usages(t, c), time.Now()
	end := begun.Add(*producersTime)
	var group sync.WaitGroup
	for _, p := range all {
		group.Go(func() { p.run(end) })
	}
	group.Wait()
	took, cost := time.Since(begun), roleCPU(used, usages(t, c))
	var waits []time.Duration
	var answers []int
	refused := 0
	for i, p := range all {
		if p.err != nil {
			t.Errorf("producer %d: %v after %d answers", i, p.err, len(p.waits))
		}
		refused += p.refused
		waits, answers = append(waits, p.waits...), append(answers, len(p.waits))
	}
	slices.Sort(waits)
	slices.Sort(answers)
	n, busy := len(waits), len(answers)
	ms := func(i int) time.Duration { return waits[i].Round(100 * time.Microsecond) }
	t.Logf("%d producers of 10 messages of 200 B: %.0f batches/s, %d refused; p50 %v, p99 %v, p99.9 %v, longest %v", busy,
		float64(n)/took.Seconds(), refused, ms(n/2), ms(n*99/100), ms(n*999/1000), ms(n-1))
	t.Logf("batches of a producer: %d at least, %d in the middle, %d at most; CPU: %s", answers[0], answers[busy/2], answers[busy-1], cost)
	if answers[0] == 0 {
		t.Error("a producer got no answer")
	}
}

// producer sends one small batch after the other.
type producer struct {
	client  *client.Client
	waits   []time.Duration // of what was stored
	refused int
	err     error
}

func (p *producer) run(end time.Time) {
	var b client.Batch
	b.Reset(1)
	for i := range 10 {
		b.Add(wire.U128{Lo: uint64(i + 1)}, make([]byte, 200), nil)
	}
	batch := b.Seal()
	for time.Now().Before(end) {
		begun := time.Now()
		_, err := p.client.Send(wire.NamedID("s"), wire.NamedID("t"), wire.Partitioning{Kind: wire.PartitioningPartition}, batch)
		var code wire.Code
		switch {
		case err == nil:
			p.waits = append(p.waits, time.Since(begun))
		case errors.As(err, &code) && code.IsTransient():
			p.refused++
		default:
			p.err = err
			return
		}
	}
}
