package operations

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
)

// web is a caller of a server's HTTP interface.
type web struct {
	s     server
	token string
}

func (s server) web(username, password string) *web {
	s.t.Helper()
	w := &web{s: s}
	var id struct {
		Token struct{ Token string } `json:"access_token"`
	}
	w.want(200, &id, "POST", "/users/login", fmt.Sprintf(`{"username":%q,"password":%q}`, username, password))
	w.token = id.Token.Token
	return w
}

// do sends one request and returns the status and the body.
func (w *web) do(method, path, body string) (int, []byte, error) {
	r, err := http.NewRequest(method, "http://"+w.s.Bound("http")+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if w.token != "" {
		r.Header.Set("Authorization", "Bearer "+w.token)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, b, err
}

// want expects a status and decodes the body into v unless it is nil.
func (w *web) want(status int, v any, method, path, body string) {
	w.s.t.Helper()
	got, b, err := w.do(method, path, body)
	if err != nil {
		w.s.t.Fatal(err)
	}
	if got != status {
		w.s.t.Fatalf("%s %s: status %d, want %d: %s", method, path, got, status, b)
	}
	if v != nil {
		if err := json.Unmarshal(b, v); err != nil {
			w.s.t.Fatalf("%s %s: %v: %s", method, path, err, b)
		}
	}
}

type webPoll struct {
	Messages []struct {
		Header struct {
			Offset uint64
			ID     json.Number
		}
		Payload []byte
	}
}

const webMessages = "/streams/first/topics/events/messages"

func produceBody(payload string) string {
	return fmt.Sprintf(`{"partitioning":{"kind":"partition_id","value":"AAAAAA=="},"messages":[{"id":7,"payload":%q}]}`, base64.StdEncoding.EncodeToString([]byte(payload)))
}

// Both interfaces of a server show the same things, and each what the other did.
func TestHTTPAndTCPAgree(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	tcp, http := s.connect("iggy", "iggy"), s.web("iggy", "iggy")
	fill(t, tcp, 20)
	var polled webPoll
	http.want(200, &polled, "GET", webMessages+"?count=100", "")
	for i, m := range polled.Messages {
		if m.Header.Offset != uint64(i) || string(m.Payload) != fmt.Sprint(i) {
			t.Errorf("message %d over HTTP: offset %d, payload %q", i, m.Header.Offset, m.Payload)
		}
	}
	if len(polled.Messages) != 20 {
		t.Errorf("%d messages over HTTP", len(polled.Messages))
	}
	http.want(201, nil, "POST", webMessages, produceBody("20"))
	expect(t, tcp, 21)

	http.want(204, nil, "PUT", "/streams/first/topics/events/consumer-offsets", `{"consumer_id":"shared","partition_id":0,"offset":5}`)
	at := wire.OffsetTarget{Consumer: wire.Consumer{Kind: 1, ID: wire.NamedID("shared")}, Stream: stream, Topic: topic, Partition: wire.SelectPartition(0)}
	if o, err := tcp.Offset(at); err != nil || o.StoredOffset != 5 {
		t.Errorf("offset stored over HTTP: %+v, %v", o, err)
	}
	if err := tcp.StoreOffset(wire.StoreOffsetRequest{OffsetTarget: at, Offset: 20, Ack: wire.AckQuorum}); err != nil {
		t.Fatal(err)
	}
	var stored struct {
		Offset uint64 `json:"stored_offset"`
	}
	http.want(200, &stored, "GET", "/streams/first/topics/events/consumer-offsets?consumer_id=shared", "")
	if stored.Offset != 20 {
		t.Errorf("offset stored over TCP: %d", stored.Offset)
	}

	s.connect("iggy", "iggy")
	var stats struct {
		Clients  int    `json:"clients_count"`
		Messages int    `json:"messages_count"`
		Size     string `json:"messages_size_bytes"`
	}
	http.want(200, &stats, "GET", "/stats", "")
	own, err := tcp.Stats()
	if err != nil {
		t.Fatal(err)
	}
	if stats.Clients != 2 || stats.Messages != 21 || stats.Size != wire.FormatSize(own.MessagesSizeBytes) {
		t.Errorf("stats over HTTP %+v, over TCP %d bytes", stats, own.MessagesSizeBytes)
	}
	cluster, err := tcp.Cluster()
	if err != nil || !strings.HasSuffix(s.Bound("http"), fmt.Sprint(":", cluster.Nodes[0].HTTP)) {
		t.Errorf("roster %+v, bound %s, %v", cluster, s.Bound("http"), err)
	}
}

// A token made over one interface is a credential on the other, and none once it is deleted there.
func TestTokensAcrossInterfaces(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	tcp, http := s.connect("iggy", "iggy"), s.web("iggy", "iggy")
	var made struct{ Token string }
	http.want(200, &made, "POST", "/personal-access-tokens", `{"name":"by-http","expiry":0}`)
	byTCP, err := tcp.CreateToken("by-tcp", 0)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			c := s.connect("iggy", "iggy")
			list, err := c.Tokens()
			if err != nil || len(list) != 2 {
				t.Errorf("%d tokens, %v", len(list), err)
			}
			if err := s.connect("iggy", "iggy").LoginToken(made.Token); err != nil {
				t.Errorf("token made over HTTP: %v", err)
			}
		})
	}
	wg.Wait()
	other := &web{s: s, token: byTCP}
	other.want(200, nil, "GET", "/streams", "")
	if err := tcp.DeleteToken("by-tcp"); err != nil {
		t.Fatal(err)
	}
	other.want(401, nil, "GET", "/streams", "")
	http.want(204, nil, "DELETE", "/personal-access-tokens/by-http", "")
	if err := s.connect("iggy", "iggy").LoginToken(made.Token); err == nil {
		t.Error("a token deleted over HTTP is accepted")
	}
}

// What HTTP confirmed is there after a kill. Bearer tokens outlive the process only with a key of
// their own; personal access tokens always do.
func TestHTTPOverAKill(t *testing.T) {
	for _, secret := range []string{"", "a-key-that-stays"} {
		s := start(t, t.TempDir(), map[string]string{"IGGY_HTTP_JWT_ENCODING_SECRET": secret})
		http := s.web("iggy", "iggy")
		fill(t, s.connect("iggy", "iggy"), 1)
		var made struct{ Token string }
		http.want(200, &made, "POST", "/personal-access-tokens", `{"name":"kept","expiry":0}`)
		confirmed := confirmUntilKilled(http, 8)
		if err := s.Restart(true); err != nil {
			t.Fatal(err)
		}
		status, _, err := http.do("GET", "/streams", "")
		if kept := status == 200; err != nil || kept != (secret != "") {
			t.Errorf("key %q: a bearer token after the restart: status %d, %v", secret, status, err)
		}
		again := &web{s: s, token: made.Token}
		var polled webPoll
		again.want(200, &polled, "GET", webMessages+"?count=1000000", "")
		there := make(map[string]int)
		for i, m := range polled.Messages {
			if m.Header.Offset != uint64(i) {
				t.Fatalf("offset %d where %d is due", m.Header.Offset, i)
			}
			there[string(m.Payload)]++
		}
		if len(confirmed) == 0 {
			t.Fatal("nothing was confirmed before the kill")
		}
		for _, payload := range confirmed {
			if there[payload] != 1 {
				t.Errorf("%s was confirmed and is there %d times", payload, there[payload])
			}
		}
	}
}

// confirmUntilKilled sends from several callers, kills the server among them, and returns what was
// confirmed.
func confirmUntilKilled(w *web, callers int) (confirmed []string) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var kill sync.Once
	for caller := range callers {
		wg.Go(func() {
			for n := 0; ; n++ {
				payload := fmt.Sprintf("caller %d message %d", caller, n)
				status, body, err := w.do("POST", webMessages, produceBody(payload))
				if err != nil || status != http.StatusCreated || !bytes.Contains(body, []byte("base_offset")) {
					return
				}
				mu.Lock()
				confirmed = append(confirmed, payload)
				enough := len(confirmed) >= 300
				mu.Unlock()
				if enough {
					kill.Do(func() { _ = w.s.Kill() })
				}
			}
		})
	}
	wg.Wait()
	return confirmed
}
