package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
	frontdoor "github.com/whippet-mq/whippet/services/front-door"
	metadatareplica "github.com/whippet-mq/whippet/services/metadata-replica"
	partitionreplica "github.com/whippet-mq/whippet/services/partition-replica"
)

// world is the interface on real roles whose files are in memory.
type world struct {
	t     testing.TB
	api   *Server
	local *frontdoor.Local
	pool  *buffer.Pool
	meta  *metadatareplica.Replica
	base  string
	token string // of root
	// refuse answers calls to partitions instead when it returns true. Calls come on several goroutines.
	refuse atomic.Pointer[func(c *link.Call) bool]
}

const testSecret = "a-secret-of-the-tests"

var rootHash = sync.OnceValue(func() string { return frontdoor.HashPassword([]byte("iggy")) })

type gate struct {
	w    *world
	next link.Service
}

// Serve implements link.Service.
func (g gate) Serve(c *link.Call) {
	if refuse := g.w.refuse.Load(); refuse != nil && (*refuse)(c) {
		c.Finish()
		return
	}
	g.next.Serve(c)
}

func start(t testing.TB, change func(*Config)) *world {
	t.Helper()
	w := &world{t: t, pool: buffer.NewPool(128 << 20)}
	fs, registry, log := vfs.NewMem(1), prometheus.NewRegistry(), hclog.NewNullLogger()
	fatal := func(_ int, reason error) { t.Errorf("fatal: %v", reason) }
	engine := loop.EngineOptions{
		Owner: journal.Owner{Node: [16]byte{1}}, Durable: func(int) journal.LSN { return 0 }, Limits: loop.Limits{Pipeline: 64, Queue: 128},
		FileSize: 16 << 20, Budget: 64 << 20, Reserve: 1 << 20, Workers: 2,
	}
	var err error
	w.meta, err = metadatareplica.Open(metadatareplica.Config{
		Limits: metadata.Limits{Clients: 64}, Rebalance: time.Second, SessionClaim: time.Minute, Engine: engine,
	}, metadatareplica.Deps{
		FS: fs, Log: log, Registry: registry, Fatal: fatal,
		Root: func() (metadata.RootUser, error) {
			return metadata.RootUser{Name: "iggy", PasswordHash: rootHash()}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	engine.Owner.Loop = 1
	parts, err := partitionreplica.Open(partitionreplica.Config{
		Loops: 1, MaxPoll: 8 << 20, MaxFrame: wire.MaxFrameSize, MaxOffsets: 4096, TrashDelay: time.Minute, Engine: engine,
	}, partitionreplica.Deps{FS: fs, Follower: w.meta, Pool: w.pool, Log: log, Registry: registry, Fatal: fatal})
	if err != nil {
		t.Fatal(err)
	}
	w.meta.Partitions = parts
	w.meta.Start()
	parts.Start()
	front, err := frontdoor.New(frontdoor.Config{Address: "127.0.0.1:0"}, frontdoor.Deps{
		Metadata: w.meta, Partitions: func(uint64) link.Service { return gate{w, parts} }, Follower: w.meta, Pool: w.pool, Registry: registry,
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Address: "127.0.0.1:0", Metrics: "/metrics", JWT: testJWT(), CORS: CORS{}}
	if change != nil {
		change(&cfg)
	}
	w.local = front.Local()
	if w.api, err = New(cfg, Deps{Local: w.local, Registry: registry}); err != nil {
		t.Fatal(err)
	}
	if err := w.api.Listen(); err != nil {
		t.Fatal(err)
	}
	front.AdvertiseHTTP(1)
	if err := front.Start(); err != nil {
		t.Fatal(err)
	}
	w.api.Serve()
	w.base = "http://" + w.api.Addr().String()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		for _, err := range []error{w.api.Stop(ctx), front.Stop(ctx), parts.Close(10 * time.Second), w.meta.Stop(10 * time.Second)} {
			if err != nil {
				t.Errorf("stop: %v", err)
			}
		}
		if used := w.pool.Used(); used != 0 {
			t.Errorf("%d bytes of buffers still taken after stop", used)
		}
	})
	return w
}

func testJWT() JWT {
	return JWT{
		Algorithm: "HS256", Issuer: "iggy.apache.org", Audience: "iggy.apache.org", ValidIssuers: []string{"iggy.apache.org"},
		ValidAudiences: []string{"iggy.apache.org"}, Expiry: time.Hour, Skew: 5 * time.Second, EncodingSecret: testSecret,
	}
}

// answer is what came back.
type answer struct {
	*http.Response
	body []byte
}

// do sends a request as the bearer of token, "" for none.
func (w *world) do(token, method, path, body string) answer {
	w.t.Helper()
	r, err := http.NewRequest(method, w.base+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return w.send(r)
}

// patient gives up on an answer that does not come.
var patient = &http.Client{Timeout: 30 * time.Second}

func (w *world) send(r *http.Request) answer {
	w.t.Helper()
	resp, err := patient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer{resp, b}
}

// root sends a request as root.
func (w *world) root(method, path, body string) answer {
	w.t.Helper()
	if w.token == "" {
		w.token = w.login("iggy", "iggy")
	}
	return w.do(w.token, method, path, body)
}

func (w *world) login(name, password string) string {
	w.t.Helper()
	a := w.do("", "POST", "/users/login", `{"username":"`+name+`","password":"`+password+`"}`).want(w.t, 200)
	var id identity
	if err := json.Unmarshal(a.body, &id); err != nil {
		w.t.Fatal(err)
	}
	return id.Token.Token
}

// want checks the status, and the protocol code of a failure.
func (a answer) want(t testing.TB, status int, id ...uint32) answer {
	t.Helper()
	if a.StatusCode != status {
		t.Fatalf("%s %s: status %d, want %d: %s", a.Request.Method, a.Request.URL, a.StatusCode, status, a.body)
	}
	if len(id) > 0 {
		var f failureBody
		if err := json.Unmarshal(a.body, &f); err != nil || f.ID != id[0] {
			t.Fatalf("%s %s: id %d, want %d: %s", a.Request.Method, a.Request.URL, f.ID, id[0], a.body)
		}
	}
	return a
}

// topic makes stream s with topic t of one partition.
func (w *world) topic() {
	w.t.Helper()
	w.root("POST", "/streams", `{"name":"s"}`).want(w.t, 200)
	w.root("POST", "/streams/s/topics", `{"name":"t","partitions_count":1,"compression_algorithm":"none","message_expiry":0,"max_topic_size":0}`).want(w.t, 200)
}

const one = `{"partitioning":{"kind":"balanced","value":""},"messages":[{"payload":"aGk="}]}`

func (a answer) contains(t testing.TB, text string) {
	t.Helper()
	if !bytes.Contains(a.body, []byte(text)) {
		t.Errorf("%s is not in %s", text, a.body)
	}
}
