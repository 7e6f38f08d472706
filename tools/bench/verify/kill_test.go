package verify

import (
	"context"
	"flag"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/tools/client"
	"github.com/whippet-mq/whippet/tools/process"
)

var (
	rounds = flag.Int("rounds", 10, "kill the server so often")
	seed   = flag.Uint64("seed", 0, "of the load and of the moments; 0 draws one")
	keep   = flag.String("keep", "", "work in this directory and leave it behind")
)

const (
	lifeTime = 700 * time.Millisecond // longest life of a server under load
)

// TestKill kills the server with SIGKILL at random moments under mixed load, and verifies after
// each restart that everything acknowledged is there, once, unchanged, at its offset.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("starts server processes")
	}
	bin, err := process.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("seed %d", *seed)
	dir := *keep
	if dir == "" {
		dir = t.TempDir()
	}
	server := process.New(bin, dir, map[string]string{
		"WHIPPET_LOG_LEVEL": "warn",
		// A small journal makes checkpoints, and what they let go, part of every few rounds.
		"WHIPPET_JOURNAL_BUDGET": "48 MiB", "WHIPPET_JOURNAL_FILE_SIZE": "4 MiB",
	})
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Kill()
	ledger, err := Create(filepath.Join(dir, "ledger"), *seed)
	if err != nil {
		t.Fatal(err)
	}
	defer ledger.Close()
	defer func() {
		if t.Failed() {
			t.Logf("the server's log ends with\n%s", server.LastWords())
		}
	}()
	ctx, stop := context.WithCancel(context.Background())
	r, err := NewRecorder(ctx, Options{
		Connect: client.Options{Username: "iggy", Password: "iggy"}, Address: server.Address, Seed: *seed,
	}, ledger)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { r.Run(ctx); close(done) }()
	defer func() { stop(); <-done }()

	random := rand.New(rand.NewPCG(*seed, 2))
	for round := 1; round <= *rounds && !t.Failed(); round++ {
		life := time.Duration(random.Int64N(int64(lifeTime)))
		time.Sleep(life) // the moment of the kill is the point of the test
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		resume := r.Still()
		summary := restartAndCheck(t, r, server)
		resume()
		t.Logf("round %d, killed after %v: %v", round, life.Round(time.Millisecond), summary)
	}
	if n := ledger.Model.Acknowledged(); n < int64(*rounds) {
		t.Errorf("only %d messages acknowledged: the test tests nothing", n)
	}
}

func restartAndCheck(t *testing.T, r *Recorder, server *process.Server) Summary {
	t.Helper()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	c, err := r.dial(context.Background(), r.address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	summary, wrong, err := Check(c, r.ledger.Model)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range append(wrong, r.Violations()...) {
		t.Error(v)
	}
	return summary
}
