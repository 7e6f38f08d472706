package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
)

// variants is how many different batches a producer makes when sizes vary.
const variants = 16

// producer sends batches to one partition.
type producer struct {
	*recorder
	client  *client.Client
	to      slot
	batches []*client.Batch
	payload []int64       // bytes of payload per batch
	every   time.Duration // between two sends that are due, 0 for a closed loop
	left    *atomic.Int64 // messages still to be sent by all producers, nil when time decides
}

func newProducer(w *Workload, i int, c *client.Client, r *recorder, to slot) *producer {
	random := rand.New(rand.NewPCG(uint64(i), 1))
	p := &producer{recorder: r, client: c, to: to}
	n := 1
	if w.MaxSize > w.Size && w.Batch*w.MaxSize <= 1<<20 {
		n = variants
	} else if w.MaxSize > w.Size {
		n = 4
	}
	for range n {
		b, bytes := &client.Batch{}, int64(0)
		b.Reset(0)
		for range w.Batch {
			payload := randomBytes(random, w.Size+random.IntN(w.MaxSize-w.Size+1))
			b.Add(wire.U128{Lo: random.Uint64(), Hi: random.Uint64()}, payload, nil)
			bytes += int64(len(payload))
		}
		b.Seal()
		p.batches, p.payload = append(p.batches, b), append(p.payload, bytes)
	}
	if w.Rate > 0 {
		p.every = time.Duration(float64(w.Batch) * float64(max(1, w.Producers)) / w.Rate * float64(time.Second))
	}
	return p
}

func randomBytes(random *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

func (p *producer) run(ctx context.Context) error {
	due := time.Now()
	to := wire.Partitioning{Kind: wire.PartitioningPartition, Partition: p.to.partition}
	for i := 0; ctx.Err() == nil; i = (i + 1) % len(p.batches) {
		b := p.batches[i]
		if p.left != nil && p.left.Add(-int64(b.Len())) < 0 {
			return nil
		}
		if p.every > 0 && !sleepUntil(ctx, due) {
			return nil
		}
		now := time.Now()
		if p.every == 0 {
			due = now
		}
		batch := b.Restamp(uint64(now.UnixMicro()))
		if _, err := p.client.Send(p.to.stream, p.to.topic, to, batch); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			p.counts.errors.Add(1)
			return fmt.Errorf("send: %w", err)
		}
		now = time.Now()
		p.record(now, now.Sub(due), int64(b.Len()), p.payload[i])
		due = due.Add(p.every)
	}
	return nil
}

// sleepUntil waits for due; false when ctx ends first.
func sleepUntil(ctx context.Context, due time.Time) bool {
	wait := time.Until(due)
	if wait <= 0 {
		return true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
