package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/wire"
)

// One user's metadata writes through many requests at once are all done, each once.
func TestConcurrentWritesOfOneUser(t *testing.T) {
	w := start(t, nil)
	w.root("GET", "/streams", "")
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() { w.root("POST", "/streams", fmt.Sprintf(`{"name":"s%d"}`, i)).want(t, 200) })
	}
	wg.Wait()
	if n := w.local.View().StreamCount(); n != 32 {
		t.Errorf("%d streams, want 32", n)
	}
	if n := sessions(w); n != 1 {
		t.Errorf("%d sessions, want 1 for one user", n)
	}
}

func sessions(w *world) (n int) {
	for range w.local.View().Clients() {
		n++
	}
	return n
}

// Reads open no session, writes one per user, and logout ends it.
func TestSessionsOfUsers(t *testing.T) {
	w := start(t, nil)
	w.root("GET", "/streams", "").want(t, 200)
	if n := sessions(w); n != 0 {
		t.Errorf("%d sessions after a read", n)
	}
	w.root("POST", "/streams", `{"name":"a"}`).want(t, 200)
	if n := sessions(w); n != 1 {
		t.Errorf("%d sessions after a write", n)
	}
	w.root("DELETE", "/users/logout", "").want(t, 204)
	if n := sessions(w); n != 0 {
		t.Errorf("%d sessions after the logout", n)
	}
	w.root("POST", "/streams", `{"name":"b"}`).want(t, 200)
}

// A session pushed out of the client table is opened anew without the caller noticing.
func TestLostSession(t *testing.T) {
	w := start(t, nil)
	w.root("POST", "/streams", `{"name":"a"}`).want(t, 200)
	for id, c := range w.local.View().Clients() {
		call := link.NewCall()
		call.Group = wire.MetadataGroup
		call.Header = wire.RequestHeader{Operation: wire.OpLogout, Client: id, Session: c.Epoch, Request: ^uint64(0)}
		w.meta.Serve(call)
		<-call.Done()
		w.meta.Wait(call.Op, time.Second)
	}
	if n := sessions(w); n != 0 {
		t.Fatalf("%d sessions left", n)
	}
	w.root("POST", "/streams", `{"name":"b"}`).want(t, 200)
	w.root("GET", "/streams/b", "").want(t, 200)
}

// User ids are given out again; neither a token nor a session of the old user works for the new one.
func TestHeirOfAUserID(t *testing.T) {
	w := start(t, nil)
	const all = `{"username":"%s","password":"secret1","status":"active","permissions":{"global":{"manage_servers":true,"read_servers":true,` +
		`"manage_users":true,"read_users":true,"manage_streams":true,"read_streams":true,"manage_topics":true,"read_topics":true,"poll_messages":true,"send_messages":true},"streams":null}}`
	w.root("POST", "/users", fmt.Sprintf(all, "old")).want(t, 200)
	old := w.login("old", "secret1")
	w.do(old, "POST", "/streams", `{"name":"by-old"}`).want(t, 200)
	w.root("DELETE", "/users/old", "").want(t, 204)
	w.do(old, "GET", "/streams", "").want(t, 403, 41)
	w.do(old, "GET", "/users/me", "").want(t, 403, 41)
	w.do(old, "POST", "/personal-access-tokens", `{"name":"ghost","expiry":0}`).want(t, 403, 41)

	w.root("POST", "/users", fmt.Sprintf(all, "heir")).want(t, 200).contains(t, `"id":1,`)
	w.do(old, "GET", "/streams", "").want(t, 403, 41)
	w.do(old, "POST", "/users/refresh-token", `{"token":"`+old+`"}`).want(t, 401, 40)
	heir := w.login("heir", "secret1")
	w.do(heir, "POST", "/streams", `{"name":"by-heir"}`).want(t, 200)
}

// An unknown outcome is 504, a refusal 503 with Retry-After; neither is a success and nothing is
// kept.
func TestUnconfirmedWrites(t *testing.T) {
	w := start(t, nil)
	w.topic()
	for _, test := range []struct {
		code    wire.Code
		reason  link.Reason
		status  int
		produce uint32
		offset  uint32
		retry   string
	}{
		{wire.CodeTransientNotCommitted, link.ReasonClosing, 504, 504, 504, ""},
		{wire.CodeTransientNotAccepted, link.ReasonClosing, 503, 58, 58, "1"},
	} {
		refuse := func(c *link.Call) bool {
			c.Status, c.Reason = test.code, test.reason
			return c.Header.Operation.Partition()
		}
		w.refuse.Store(&refuse)
		a := w.root("POST", "/streams/s/topics/t/messages", one).want(t, test.status, test.produce)
		if got := a.Header.Get("Retry-After"); got != test.retry {
			t.Errorf("Retry-After %q, want %q", got, test.retry)
		}
		w.root("PUT", "/streams/s/topics/t/consumer-offsets", `{"partition_id":0,"offset":0}`).want(t, test.status, test.offset)
	}
	w.refuse.Store(nil)
	w.root("GET", "/streams/s/topics/t/messages", "").want(t, 200).contains(t, `"messages":[]`)
}

// Writes in flight are bounded per credential; the next ones pass once they are over.
func TestWritesInFlight(t *testing.T) {
	w := start(t, nil)
	w.topic()
	arrived, open := make(chan struct{}, writesPerCaller), make(chan struct{})
	refuse := func(c *link.Call) bool {
		if c.Header.Operation == wire.OpSendMessages {
			arrived <- struct{}{}
			<-open
		}
		return false
	}
	w.refuse.Store(&refuse)
	var wg sync.WaitGroup
	for range writesPerCaller {
		wg.Go(func() { w.root("POST", "/streams/s/topics/t/messages", one).want(t, 201) })
	}
	for range writesPerCaller {
		<-arrived
	}
	w.root("POST", "/streams/s/topics/t/messages", one).want(t, 429, 429)
	w.do(w.login("iggy", "iggy"), "PUT", "/streams/s/topics/t/consumer-offsets", `{"partition_id":0,"offset":0}`).want(t, 400, 4100)
	close(open)
	wg.Wait()
	w.root("POST", "/streams/s/topics/t/messages", one).want(t, 201).contains(t, `"base_offset":32}`)
}

// Sends without confirmation are there a little later, and a stop waits for them.
func TestQuietProduce(t *testing.T) {
	w := start(t, nil)
	w.topic()
	a := w.root("POST", "/streams/s/topics/t/messages?ack=none", one).want(t, 202)
	if got := a.Header.Get("Iggy-Durability"); got != "none" || len(a.body) != 0 {
		t.Errorf("durability %q, body %q", got, a.body)
	}
	w.api.background.Wait()
	w.root("GET", "/streams/s/topics/t/messages", "").want(t, 200).contains(t, `"count":1`)
}

// Each answer has its own time to leave, also where the one before had less.
func TestEveryAnswerHasItsDeadline(t *testing.T) {
	w := start(t, func(c *Config) { c.CORS.Enabled = true })
	w.root("GET", "/streams", "")
	for _, q := range []struct{ method, path, body string }{
		{"GET", "/ping", ""}, {"GET", "/nowhere", ""}, {"OPTIONS", "/ping", ""}, {"GET", "/streams", ""}, {"DELETE", "/streams", ""},
		{"POST", "/streams", `{"name":"x"}`}, {"PUT", "/streams/x", `{"name":"y"}`}, {"DELETE", "/streams/y", ""}, {"POST", "/streams", `{`},
	} {
		r, err := http.NewRequest(q.method, q.path, strings.NewReader(q.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+w.token)
		r.Header.Set("Content-Type", "application/json")
		out := &deadlineWriter{header: make(http.Header)}
		w.api.ServeHTTP(out, r)
		if out.status == 0 || !out.ok {
			t.Errorf("%s %s: status %d without a deadline of its own", q.method, q.path, out.status)
		}
	}
}

type deadlineWriter struct {
	header   http.Header
	status   int
	deadline time.Time
	ok       bool // the deadline was ahead when the status left
}

func (d *deadlineWriter) Header() http.Header                { return d.header }
func (d *deadlineWriter) Write(b []byte) (int, error)        { return len(b), nil }
func (d *deadlineWriter) SetReadDeadline(time.Time) error    { return nil }
func (d *deadlineWriter) SetWriteDeadline(t time.Time) error { d.deadline = t; return nil }
func (d *deadlineWriter) WriteHeader(status int) {
	d.status, d.ok = status, d.deadline.After(time.Now())
}
