package service

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
)

func startOps(t *testing.T) *Ops {
	t.Helper()
	c, _ := load(t, nil, "WHIPPET_OPS_ADDRESS=127.0.0.1:0")
	o, err := NewOps(c, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close(context.Background()) })
	return o
}

func get(t *testing.T, o *Ops, path string) (int, string) {
	t.Helper()
	response, err := http.Get("http://" + o.Address() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestReadyz(t *testing.T) {
	o := startOps(t)
	expect := func(status int, text string) {
		t.Helper()
		if code, body := get(t, o, "/readyz"); code != status || body != text {
			t.Errorf("/readyz is %d %q, want %d %q", code, body, status, text)
		}
	}
	expect(503, "")
	disk, listeners := o.Condition("disk"), o.Condition("listeners")
	expect(503, "failing disk: starting\nfailing listeners: starting\n")
	listeners.Hold()
	disk.Degrade("full")
	expect(200, "degraded disk: full\nok listeners\n")
	listeners.Fail("closed")
	expect(503, "degraded disk: full\nfailing listeners: closed\n")
	o.Forget("listeners")
	o.Condition("disk").Hold()
	expect(200, "ok disk\n")
	code, body := get(t, o, "/metrics")
	if code != 200 {
		t.Errorf("/metrics is %d", code)
	}
	contains(t, body, "whippet_ready 1", "whippet_build_info{", "go_goroutines", "process_resident_memory_bytes")
}

func TestHealthz(t *testing.T) {
	o := startOps(t)
	if code, body := get(t, o, "/healthz"); code != 200 || body != "ok\n" {
		t.Errorf("got %d %q", code, body)
	}
	o.Alive("loop 0", func() error { return nil })
	o.Alive("loop 1", func() error { return errors.New("no turn for 10 s") })
	if code, body := get(t, o, "/healthz"); code != 503 || body != "failing loop 1: no turn for 10 s\n" {
		t.Errorf("got %d %q", code, body)
	}
}

func TestOpsPages(t *testing.T) {
	o := startOps(t)
	o.Registry().MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "whippet_own_total"}))
	o.Handle("/own", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "mine") }))
	for path, word := range map[string]string{"/": "/readyz\n/debug/pprof/\n/own\n", "/own": "mine", "/metrics": "whippet_own_total 0", "/debug/pprof/": "goroutine", "/debug/pprof/goroutine?debug=1": "goroutine profile"} {
		code, body := get(t, o, path)
		if code != 200 {
			t.Errorf("%s is %d", path, code)
		}
		contains(t, body, word)
	}
	if code, _ := get(t, o, "/nothing"); code != 404 {
		t.Errorf("/nothing is %d", code)
	}
}

// A default port that is taken moves; one that was given does not.
func TestTakenPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := taken.Addr().String()

	c := Defaults()
	c.Ops.Address = address
	o, err := NewOps(c, hclog.NewNullLogger())
	if err != nil {
		t.Fatalf("the default port did not move: %v", err)
	}
	if o.Address() == address {
		t.Errorf("bound to %s, which is taken", address)
	}
	_ = o.Close(context.Background())

	c, _ = load(t, nil, "WHIPPET_OPS_ADDRESS="+address)
	if _, err := NewOps(c, hclog.NewNullLogger()); err == nil {
		t.Error("an explicit port that is taken is an error")
	} else {
		contains(t, err.Error(), "ops.address", address, "environment WHIPPET_OPS_ADDRESS")
	}
}
