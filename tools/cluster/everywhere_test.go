package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
	"github.com/whippet-mq/whippet/tools/local"
)

// TestCredentialsServeEverywhere takes what one door gave out to every other one, at once: bearer tokens of
// HTTP, and access tokens made over HTTP that log in over TCP.
func TestCredentialsServeEverywhere(t *testing.T) {
	both(t, func(t *testing.T, p local.Plan) {
		c := start(t, p)
		first := "http://" + c.Process(doors(c)[0]).HTTP
		var session struct {
			Bearer struct{ Token string } `json:"access_token"`
		}
		post(t, first+"/users/login", "", map[string]any{"username": "iggy", "password": "iggy"}, &session)
		for round := range 5 {
			var made struct{ Token string }
			post(t, first+"/personal-access-tokens", session.Bearer.Token, map[string]any{"name": fmt.Sprintf("token-%d", round), "expiry": 0}, &made)
			for _, m := range doors(c) {
				at := c.Process(m)
				login, err := client.Dial(t.Context(), client.Options{Address: at.TCP, Token: made.Token})
				if err != nil {
					t.Fatalf("%s %d does not know the access token: %v", m.Role, m.ID, err)
				}
				login.Close()
				request(t, http.MethodGet, "http://"+at.HTTP+"/streams", session.Bearer.Token, nil, nil)
			}
		}
	})
}

// TestTopicAfterAFailover makes topics while the processes that lead at first are dead, and writes to each
// partition of them.
func TestTopicAfterAFailover(t *testing.T) {
	both(t, func(t *testing.T, p local.Plan) {
		c := start(t, p)
		for _, m := range c.Members {
			if m.ID == 0 {
				if err := c.Kill(m); err != nil {
					t.Fatal(err)
				}
			}
		}
		admin := connect(t, c.Process(doors(c)[1]).TCP)
		if _, err := admin.CreateStream("s"); err != nil {
			t.Fatal(err)
		}
		if p.AllRole == 0 { // three copies need three that live
			m, err := c.Add(local.Partition)
			if err != nil {
				t.Fatal(err)
			}
			again(t, c, m)
		}
		q := wire.CreateTopicRequest{Stream: wire.NamedID("s"), Name: []byte("t"), PartitionsCount: 6}
		if _, err := admin.CreateTopic(q); err != nil {
			t.Fatal(err)
		}
		batch, err := wire.AppendBatch(nil, []wire.NewMessage{{ID: wire.U128{Lo: 1}, Payload: []byte("x")}})
		if err != nil {
			t.Fatal(err)
		}
		for id := range q.PartitionsCount {
			to := wire.Partitioning{Kind: wire.PartitioningPartition, Partition: id}
			if _, err := admin.Send(q.Stream, wire.NamedID("t"), to, bytes.Clone(batch)); err != nil {
				t.Errorf("partition %d: %v", id, err)
			}
		}
	})
}

func post(t *testing.T, url, bearer string, body, into any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	request(t, http.MethodPost, url, bearer, bytes.NewReader(text), into)
}

// request fails the test unless it succeeds; into takes the answer, if it is given.
func request(t *testing.T, method, url, bearer string, body io.Reader, into any) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	if bearer != "" {
		q.Header.Set("Authorization", "Bearer "+bearer)
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode >= http.StatusMultipleChoices {
		t.Fatalf("%s %s: %s %s %v", method, url, r.Status, text, err)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
	}
}
