package cluster

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/tools/bench/verify"
	"github.com/whippet-mq/whippet/tools/client"
	"github.com/whippet-mq/whippet/tools/local"
)

// TestKill kills one process after the other with SIGKILL under mixed load, starts each again, and
// reads everything back at the end. With -official the official Go client sends as well.
func TestKill(t *testing.T) {
	both(t, func(t *testing.T, p local.Plan) {
		c := start(t, p)
		l, o := load(t, c, verify.Options{}), sendOfficially(t, c)
		for round := range *rounds {
			for _, m := range c.Members {
				l.pause(700)
				if err := c.Kill(m); err != nil {
					t.Fatal(err)
				}
				l.pause(1500)
				again(t, c, m)
			}
			l.check(t)
			t.Logf("round %d: %d messages acknowledged%s", round+1, l.ledger.Model.Acknowledged(), o.summary())
		}
		o.check(t)
	})
}

// TestKillAll kills all processes at the same moment.
func TestKillAll(t *testing.T) {
	both(t, func(t *testing.T, p local.Plan) {
		c := start(t, p)
		l := load(t, c, verify.Options{})
		for range *rounds {
			l.pause(1500)
			for _, m := range c.Members {
				if err := c.Kill(m); err != nil {
					t.Fatal(err)
				}
			}
			up(t, c)
			l.check(t)
		}
	})
}

// again starts a member that was killed or stopped.
func again(t *testing.T, c *local.Cluster, m local.Member) {
	t.Helper()
	if err := c.Start(m); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), readyTime)
	defer cancel()
	if err := c.Await(ctx, m); err != nil {
		t.Fatal(err)
	}
}

// loaded is a cluster under mixed load.
type loaded struct {
	cluster  *local.Cluster
	ledger   *verify.Ledger
	recorder *verify.Recorder
	random   *rand.Rand
}

// load starts mixed load through all doors, until the test ends.
func load(t *testing.T, c *local.Cluster, o verify.Options) *loaded {
	t.Helper()
	if o.Seed = *seed; o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	t.Logf("seed %d", o.Seed)
	var turn atomic.Int64
	d := doors(c)
	o.Connect = client.Options{Username: "iggy", Password: "iggy"}
	o.Address = func() string {
		for next, i := int(turn.Add(1)), 0; i < len(d); i++ { // the next door that is open
			if p := c.Process(d[(next+i)%len(d)]); p.Ready {
				return p.TCP
			}
		}
		return "127.0.0.1:1" // where nobody is
	}
	ledger, err := verify.Create(filepath.Join(t.TempDir(), "ledger"), o.Seed)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r, err := verify.NewRecorder(ctx, o, ledger)
	if err != nil {
		stop()
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { r.Run(ctx); close(done) }()
	t.Cleanup(func() { stop(); <-done; _ = ledger.Close() })
	return &loaded{c, ledger, r, rand.New(rand.NewPCG(o.Seed, 2))}
}

// pause lets the load run for a random time of up to most milliseconds: the moment of a kill is the
// point of these tests.
func (l *loaded) pause(most int64) {
	elapse(time.Duration(l.random.Int64N(most)) * time.Millisecond)
}

// check reads everything back while nothing is written.
func (l *loaded) check(t *testing.T) {
	t.Helper()
	resume := l.recorder.Still()
	defer resume()
	c := connect(t, l.cluster.Process(doors(l.cluster)[0]).TCP)
	summary, wrong, err := verify.Check(c, l.ledger.Model)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range append(wrong, l.recorder.Violations()...) {
		t.Error(v)
	}
	if l.ledger.Model.Acknowledged() == 0 {
		t.Error("nothing was acknowledged: the test tests nothing")
	}
	t.Log(summary)
}
