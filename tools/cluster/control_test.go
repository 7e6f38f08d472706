package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/tools/cli"
	"github.com/whippet-mq/whippet/tools/cluster/lanes"
	"github.com/whippet-mq/whippet/tools/local"
	"github.com/whippet-mq/whippet/tools/process"
)

var natsDown = flag.Duration("nats-down", 2*time.Second, "TestControlPlaneDies: NATS is away so long, each time")

// TestControlPlaneDies takes NATS away under steady load, killed and stopped: no request fails or waits for it, and
// soon after it is back it shows everything again. Then a primary is killed, and the events say so.
func TestControlPlaneDies(t *testing.T) {
	if testing.Short() {
		t.Skip("starts clusters of processes")
	}
	if _, err := process.BuildNATS(built(t)); err != nil {
		t.Fatal(err)
	}
	p := services
	p.NATS = true
	c := start(t, p)
	w := &gapWorld{t: t, cluster: c, admin: connect(t, c.Process(doors(c)[0]).TCP)}
	nats, victim := w.find(local.NATS, 0), w.find(local.Partition, 0)
	everyone := len(c.Members) - 1
	awaitTop(t, c, everyone)
	events := follow(t, c)

	l := w.load(victim)
	l.Start(t.Context())
	before := time.Now()
	elapse(time.Second)
	during := time.Now()
	if err := c.Kill(nats); err != nil {
		t.Fatal(err)
	}
	elapse(*natsDown)
	again(t, c, nats)
	back := time.Now()
	awaitTop(t, c, everyone)
	t.Logf("all %d processes are shown again %v after NATS is back", everyone, time.Since(back).Round(100*time.Millisecond))
	w.signal(nats, syscall.SIGSTOP)
	elapse(*natsDown)
	w.signal(nats, syscall.SIGCONT)
	awaitTop(t, c, everyone)
	after := time.Now()
	l.Still()
	for _, kind := range l.Kinds() {
		first, then := l.Look(kind, lanes.Span{From: before, To: during}), l.Look(kind, lanes.Span{From: during, To: after})
		t.Log(lanes.Row("NATS away", kind, first, then))
		if then.Errors > 0 || then.Breaks > 0 || then.Count == 0 {
			t.Errorf("%s: %d answers, %d errors, %d connections ended, the last: %s", kind, then.Count, then.Errors, then.Breaks, then.Word)
		}
		if then.Gap > gapLimit {
			t.Errorf("%s: no answer for %v", kind, then.Gap)
		}
	}

	node := nodeOf(t, c, victim)
	events.forget()
	if err := c.Kill(victim); err != nil {
		t.Fatal(err)
	}
	events.await(t, "does not hear node "+node)
	events.await(t, "leads partition")
	again(t, c, victim)
	events.await(t, "partition "+node+"  is ready")
}

// nodeOf is the id a partition replica has among the nodes.
func nodeOf(t *testing.T, c *local.Cluster, m local.Member) string {
	t.Helper()
	for _, row := range awaitTop(t, c, len(c.Members)-1) {
		if row.Ops == c.Process(m).Ops {
			return row.Node
		}
	}
	t.Fatalf("%s %d is not shown", m.Role, m.ID)
	return ""
}

// topRow is a process as whippet top shows it.
type topRow struct{ Role, Node, State, Ops string }

// awaitTop asks until as many processes are shown, all of them well.
func awaitTop(t *testing.T, c *local.Cluster, want int) (rows []topRow) {
	t.Helper()
	deadline := time.Now().Add(readyTime)
	for time.Now().Before(deadline) {
		out, errs, code := whippet(t, c, "top", "--once", "-o", "json")
		rows = nil
		if code == 0 && json.Unmarshal([]byte(out), &rows) != nil {
			t.Fatalf("top: %s%s", out, errs)
		}
		if len(rows) == want && !slices.ContainsFunc(rows, func(r topRow) bool { return r.State != "ok" }) {
			return rows
		}
	}
	t.Fatalf("top shows %+v, not %d processes", rows, want)
	return nil
}

// commandLimit ends a command that waits for what does not come: then it says for what.
const commandLimit = 2 * time.Minute

// whippet runs a command line against the control plane of the cluster.
func whippet(t *testing.T, c *local.Cluster, args ...string) (out, errs string, code int) {
	var o, e bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), commandLimit)
	defer cancel()
	code = cli.Run(ctx, environment(t, c, &o, &e), args)
	return o.String(), e.String(), code
}

func environment(t *testing.T, c *local.Cluster, out, errs interface{ Write([]byte) (int, error) }) cli.Environment {
	return cli.Environment{
		Version: "test", In: strings.NewReader(""), Out: out, Err: errs, Contexts: filepath.Join(t.TempDir(), "contexts.toml"),
		Getenv: func(name string) string { return map[string]string{"WHIPPET_NATS_URL": c.NATS()}[name] },
	}
}

// followed is what a running whippet cluster events has printed.
type followed struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (f *followed) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.text.Write(b)
}

// follow runs it until the test ends.
func follow(t *testing.T, c *local.Cluster) *followed {
	f := &followed{}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	go func() { ended <- cli.Run(ctx, environment(t, c, f, f), []string{"cluster", "events", "--follow"}) }()
	t.Cleanup(func() {
		stop()
		if code := <-ended; code != 0 {
			t.Errorf("cluster events ended with %d", code)
		}
		if t.Failed() {
			t.Log(f.text.String())
		}
	})
	return f
}

// forget drops what was printed so far.
func (f *followed) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.text.Reset()
}

func (f *followed) await(t *testing.T, want string) {
	t.Helper()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for deadline := time.Now().Add(readyTime); time.Now().Before(deadline); <-look.C {
		f.mu.Lock()
		text := f.text.String()
		f.mu.Unlock()
		if strings.Contains(text, want) {
			return
		}
	}
	t.Fatalf("no event says %q", want)
}
