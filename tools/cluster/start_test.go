package cluster

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
	"github.com/whippet-mq/whippet/tools/local"
	"github.com/whippet-mq/whippet/tools/process"
)

// What is wanted of a cluster is a second on a machine that has nothing else to do. On top, this one may take for each
// process what it takes for a single server.
const startLimit = time.Second

// TestStart starts all processes at the same moment in any order: the first login works at once, and nobody
// is deposed on the way. The figures stand beside those of a single server started in the same run.
func TestStart(t *testing.T) {
	forms(t, func(t *testing.T, p local.Plan) {
		random := rand.New(rand.NewPCG(orRandom(*seed), 3))
		for range *rounds {
			alone := startAlone(t)
			p.Bin = built(t)
			c, err := local.Make(filepath.Join(t.TempDir(), "cluster"), p)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Down() })
			h := watchHiccups()
			begun, together := time.Now(), random.IntN(2) == 0
			for i, at := range random.Perm(len(c.Members)) {
				if err := c.Start(c.Members[at]); err != nil {
					t.Fatal(err)
				}
				if !together && i%2 == 0 {
					elapse(time.Duration(random.IntN(100)) * time.Millisecond)
				}
			}
			first := firstLogin(t, c, begun)
			everywhere := time.Since(begun)
			t.Logf("first login after %v, at every door after %v; a single server: %v; this process was late by up to %v",
				first.Round(time.Millisecond), everywhere.Round(time.Millisecond), alone.Round(time.Millisecond), h.longest())
			if limit := startLimit + time.Duration(len(c.Members))*alone + h.longest(); first > limit {
				t.Errorf("first login after %v, at most %v were to be", first, limit)
			}
			up(t, c)
			unmoved(t, c, h)
			restartBackups(t, c, h)
			h.end()
			if err := c.Down(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func orRandom(seed uint64) uint64 {
	if seed == 0 {
		return rand.Uint64()
	}
	return seed
}

// startAlone is how long a single server takes until somebody has logged in.
func startAlone(t *testing.T) time.Duration {
	t.Helper()
	s := process.New(filepath.Join(built(t), "whippet-server"), t.TempDir(), nil)
	begun := time.Now()
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	connect(t, s.Address()).Close()
	took := time.Since(begun)
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	return took
}

// firstLogin logs in at every door and returns how long the first one that let anybody in took.
func firstLogin(t *testing.T, c *local.Cluster, begun time.Time) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), readyTime)
	defer cancel()
	var first sync.Once
	var took time.Duration
	var all sync.WaitGroup
	for _, d := range doors(c) {
		all.Go(func() {
			for ctx.Err() == nil {
				address := c.Process(d).TCP
				if address == "" {
					sleep(ctx, 5*time.Millisecond)
					continue
				}
				one, err := client.Dial(ctx, client.Options{Address: address, Username: "iggy", Password: "iggy", RetryFor: readyTime, Timeout: readyTime})
				if err == nil {
					first.Do(func() { took = time.Since(begun) })
					one.Close()
					return
				}
				sleep(ctx, 5*time.Millisecond)
			}
			t.Errorf("no login at %s %d", d.Role, d.ID)
		})
	}
	all.Wait()
	return took
}

// unmoved checks that every group is in the view it began in, where the machine let it.
func unmoved(t *testing.T, c *local.Cluster, h *hiccups) {
	t.Helper()
	leader := metadataPrimary(t, c)
	view, changes := metric(c, leader, "whippet_metadata_view"), 0.0
	for _, m := range holders(c) {
		changes += metric(c, m, "whippet_partition_view_changes_total")
	}
	if view == 0 && changes == 0 {
		return
	}
	late := h.longest()
	t.Logf("metadata in view %v, %v partitions taken over; this process was late by up to %v", view, changes, late)
	if late < tolerable {
		t.Error("a primary was deposed although nobody failed")
	}
}

// restartBackups kills and starts backups of the metadata: whatever moment they come back at, who leads goes on.
func restartBackups(t *testing.T, c *local.Cluster, h *hiccups) {
	t.Helper()
	leader := metadataPrimary(t, c)
	if metric(c, leader, "whippet_metadata_view") != 0 {
		return
	}
	for _, m := range keepers(c) {
		if m.ID == leader.ID {
			continue
		}
		if err := c.Kill(m); err != nil {
			t.Fatal(err)
		}
		again(t, c, m)
		if view := metric(c, metadataPrimary(t, c), "whippet_metadata_view"); view != 0 && h.longest() < tolerable {
			t.Errorf("the return of %s %d moved the metadata to view %v", m.Role, m.ID, view)
		}
	}
	one := connect(t, c.Process(doors(c)[0]).TCP)
	if _, err := one.CreateStream("after"); err != nil {
		t.Error(err)
	}
	if err := one.DeleteStream(wire.NamedID("after")); err != nil {
		t.Error(err)
	}
	one.Close()
}

// tolerable is how late this process may be run before a machine counts as too busy for judgements about
// time: members of a cluster give each other half a second.
const tolerable = 250 * time.Millisecond

// hiccups notes how late the machine runs this process.
type hiccups struct {
	mu   sync.Mutex
	most time.Duration
	stop chan struct{}
}

func watchHiccups() *hiccups {
	h := &hiccups{stop: make(chan struct{})}
	go func() {
		const every = 5 * time.Millisecond
		tick := time.NewTimer(every)
		due := time.Now().Add(every)
		for {
			select {
			case <-h.stop:
				return
			case <-tick.C:
				h.mu.Lock()
				h.most = max(h.most, time.Since(due))
				h.mu.Unlock()
				due = time.Now().Add(every)
				tick.Reset(every)
			}
		}
	}()
	return h
}

func (h *hiccups) longest() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.most.Round(time.Millisecond)
}

func (h *hiccups) end() { close(h.stop) }
