package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
)

// drainTime bounds how long consumers may need for what is left when the producers are done.
const drainTime = time.Minute

// Run performs w and reports what it measured. When ctx ends early, what was measured until then
// is reported.
func Run(ctx context.Context, w Workload) (*Report, error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	admin, err := client.Dial(ctx, w.Connect)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	defer admin.Close()
	if err := w.setUp(admin); err != nil {
		return nil, err
	}
	if err := w.preload(ctx); err != nil {
		return nil, fmt.Errorf("preload: %w", err)
	}
	r := &run{Workload: &w, meter: &meter{start: time.Now()}, drained: make(chan struct{})}
	if err := r.recruit(ctx); err != nil {
		r.dismiss()
		return nil, err
	}
	report, err := r.measure(ctx)
	r.dismiss()
	if !w.Keep {
		err = errors.Join(err, w.tearDown(admin))
	}
	return report, err
}

// run is one workload under way.
type run struct {
	*Workload
	meter     *meter
	producers []*producer
	consumers []*consumer
	drained   chan struct{}
}

// recruit connects every actor, before the clock starts.
func (r *run) recruit(ctx context.Context) error {
	var left *atomic.Int64
	if r.Count > 0 {
		left = &atomic.Int64{}
		left.Store(r.Count)
	}
	slots := r.slots()
	for i := range r.Producers {
		c, err := client.Dial(ctx, r.Connect)
		if err != nil {
			return fmt.Errorf("connect producer %d: %w", i+1, err)
		}
		p := newProducer(r.Workload, i, c, r.meter.recorder(&r.meter.sent), slots[i%len(slots)])
		p.left = left
		r.producers = append(r.producers, p)
	}
	for i := range r.Consumers {
		c, err := client.Dial(ctx, r.Connect)
		if err != nil {
			return fmt.Errorf("connect consumer %d: %w", i+1, err)
		}
		r.consumers = append(r.consumers, &consumer{
			recorder: r.meter.recorder(&r.meter.received), client: c, from: slots[i%len(slots)], group: r.membership(i),
			count: uint32(r.PollCount), number: uint32(i + 1), live: r.Producers > 0, drained: r.drained,
		})
	}
	return nil
}

// membership is the group the i-th consumer joins, nil for a plain consumer.
func (r *run) membership(i int) *wire.GroupTarget {
	if r.Groups == 0 {
		return nil
	}
	g := i % r.Groups
	t := i / r.Groups % r.Topics
	s := i / r.Groups / r.Topics % r.Streams
	return &wire.GroupTarget{Stream: r.stream(s), Topic: r.topic(t), Group: r.group(g)}
}

func (r *run) dismiss() {
	for _, p := range r.producers {
		p.client.Close()
	}
	for _, c := range r.consumers {
		c.client.Close()
	}
}

// measure lets the actors work and merges their records.
func (r *run) measure(ctx context.Context) (*Report, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	timers := r.timers(stop)
	defer timers()

	started := time.Now()
	producing, consuming := newTeam(), newTeam()
	for _, p := range r.producers {
		producing.start(func() error { return p.run(ctx) })
	}
	for _, c := range r.consumers {
		consuming.start(func() error { return c.run(ctx) })
	}
	producing.wait()
	close(r.drained)
	took := time.Since(started)
	if r.Producers > 0 && r.Consumers > 0 {
		drain := time.AfterFunc(drainTime, stop)
		defer drain.Stop()
	}
	consuming.wait()
	if r.Producers == 0 {
		took = time.Since(started)
	}
	if r.OnClose != nil {
		r.OnClose()
	}
	return r.report(took - r.Warmup), errors.Join(producing.err(), consuming.err())
}

// timers open the meter after the warm-up and stop the actors after the duration.
func (r *run) timers(stop func()) (cancel func()) {
	open := func() {
		if r.OnOpen != nil {
			r.OnOpen()
		}
		r.meter.open()
	}
	warm := time.AfterFunc(time.Hour, open)
	if r.Warmup == 0 {
		warm.Stop()
		open()
	} else {
		warm.Reset(r.Warmup)
	}
	if r.Duration == 0 {
		return func() { warm.Stop() }
	}
	end := time.AfterFunc(r.Warmup+r.Duration, stop)
	return func() { warm.Stop(); end.Stop() }
}

// preload stores messages for consumers to read, with one producer per partition.
func (w *Workload) preload(ctx context.Context) error {
	if w.Preload <= 0 {
		return nil
	}
	slots := w.slots()
	fill := *w
	fill.Rate = 0
	m := &meter{start: time.Now()}
	producing := newTeam()
	for i, s := range slots {
		left := &atomic.Int64{}
		left.Store((w.Preload + int64(len(slots)) - 1) / int64(len(slots)))
		producing.start(func() error {
			c, err := client.Dial(ctx, w.Connect)
			if err != nil {
				return err
			}
			defer c.Close()
			p := newProducer(&fill, i, c, m.recorder(&m.sent), s)
			p.left = left
			return p.run(ctx)
		})
		if i%maxPreloaders == maxPreloaders-1 {
			producing.wait()
		}
	}
	producing.wait()
	return producing.err()
}

// maxPreloaders bounds the connections that fill partitions at the same time.
const maxPreloaders = 8

// team is a set of goroutines and their errors.
type team struct {
	wg   sync.WaitGroup
	mu   sync.Mutex
	errs []error
}

func newTeam() *team { return &team{} }

func (t *team) start(f func() error) {
	t.wg.Go(func() {
		if err := f(); err != nil {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.errs = append(t.errs, err)
		}
	})
}

func (t *team) wait() { t.wg.Wait() }

// err is what went wrong, the first few in words and the rest as a number.
func (t *team) err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	const shown = 3
	if len(t.errs) <= shown {
		return errors.Join(t.errs...)
	}
	return errors.Join(append(t.errs[:shown:shown], fmt.Errorf("and %d more errors", len(t.errs)-shown))...)
}

func merge[A any](actors []A, pick func(A) *hdrhistogram.Histogram) *hdrhistogram.Histogram {
	out := newHistogram()
	for _, a := range actors {
		out.Merge(pick(a))
	}
	return out
}
