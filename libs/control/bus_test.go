package control

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestPatterns(t *testing.T) {
	source := Source{Cluster: "a b", Role: RoleFrontDoor, Process: "p"}
	subject := source.Subject(ChannelView)
	for pattern, want := range map[string]bool{
		subject: true, All(""): true, All("a b"): true, All("a"): false,
		"whippet.v1.*.front-door.>": true, "whippet.v1.*.metadata.>": false, "whippet.v1.*.*.*.view": true, "whippet.v1.*.*.*.node": false,
		"whippet.v1.*.*.*": false, "whippet.v1.*.*.*.*.*": false, "whippet.v2.>": false,
	} {
		if matches(pattern, subject) != want {
			t.Errorf("%s matches %s: %v", pattern, subject, !want)
		}
	}
	if strings.Count(subject, ".") != 5 || strings.ContainsAny(subject, " *>") {
		t.Errorf("subject %q", subject)
	}
}

// TestTokens shows that no two names of clusters share subjects.
func TestTokens(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"", "=", "a", "a.b", "a=2Eb", "a*b", "a>b", "a b", "ä", "A"} {
		s := Source{Cluster: name, Role: RoleServer, Process: "p"}
		subject := s.Subject(ChannelNode)
		if other, twice := seen[subject]; twice {
			t.Errorf("%q and %q share %s", name, other, subject)
		}
		if seen[subject] = name; strings.Count(subject, ".") != 5 || strings.ContainsAny(subject, " *>\t") {
			t.Errorf("%q makes %q", name, subject)
		}
	}
}

// TestSlowSubscriber shows that a subscriber that does not read loses the oldest and holds up nobody.
func TestSlowSubscriber(t *testing.T) {
	l := NewLocal()
	if l.Listening() {
		t.Error("somebody listens from the start")
	}
	slow, _ := l.Subscribe("a.>")
	other, _ := l.Subscribe("b")
	for i := range 3 * waiting {
		if err := l.Publish("a.b", fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range waiting {
		if d := <-slow.C; string(d.Payload) != fmt.Sprint(2*waiting+i) {
			t.Fatalf("delivery %d is %s", i, d.Payload)
		}
	}
	select {
	case d := <-other.C:
		t.Errorf("another subject got %+v", d)
	default:
	}
	slow.Close()
	slow.Close()
	other.Close()
	if l.Listening() {
		t.Error("somebody listens after all have gone")
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, bad := range []string{"", "x", `{"v":2}`, `{}`, `{"v":1,"seq":-1}`, `[]`} {
		if m, err := Decode([]byte(bad)); err == nil {
			t.Errorf("%q is %+v", bad, m)
		}
	}
	m, err := Decode([]byte(`{"v":1,"seq":3,"new":{},"events":[{"kind":"of a later build","count":1}]}`))
	if err != nil || m.Seq != 3 || len(m.Events) != 1 {
		t.Errorf("a message with more in it: %+v, %v", m, err)
	}
}

// TestStream shows what a process says at its ops endpoint, and that both sides let go.
func TestStream(t *testing.T) {
	bus := NewLocal()
	ops := httptest.NewServer(Stream(bus))
	defer ops.Close()
	p := publisher(bus, nil)
	defer p.Close()
	got := make(chan Delivery, 100)
	gone := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		gone <- Listen(ctx, strings.TrimPrefix(ops.URL, "http://"), func() { p.Say(Event{Kind: Ready}) }, func(d Delivery) { got <- d })
	}()
	for _, want := range []Channel{ChannelNode, ChannelMetrics} {
		select {
		case d := <-got:
			m, err := Decode(d.Payload)
			if err != nil || d.Subject != m.Source.Subject(want) || m.Source.Role != RolePartition {
				t.Fatalf("%s: %+v, %v", d.Subject, m, err)
			}
		case err := <-gone:
			t.Fatal(err)
		}
	}
	p.Say(Event{Kind: Stopping})
	p.Close()
	if err := <-gone; err == nil || ctx.Err() != nil {
		t.Errorf("the stream ended with %v", err)
	}
	last := Message{}
	for len(got) > 0 {
		last, _ = Decode((<-got).Payload)
	}
	if len(last.Events) != 1 || last.Events[0].Kind != Stopping {
		t.Errorf("the last word is %+v", last)
	}
	if err := Listen(ctx, strings.TrimPrefix(ops.URL, "http://"), func() {}, nil); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("a process that has stopped listens: %v", err)
	}
}

// TestListenSays shows that whoever asks at the wrong place is told so.
func TestListenSays(t *testing.T) {
	other := httptest.NewServer(nil)
	defer other.Close()
	for address, want := range map[string]string{
		strings.TrimPrefix(other.URL, "http://"): "is it an ops endpoint",
		"127.0.0.1:1":                            "refused",
	} {
		err := Listen(t.Context(), address, func() { t.Error("it listens") }, func(Delivery) {})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
	}
}
