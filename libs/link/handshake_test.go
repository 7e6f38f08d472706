package link

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
)

// The cluster of the reference whose conversations testdata holds.
const recordedSecret = "replab-shared-secret-0123456789abcdef"

var recordedCluster = wire.ClusterID("replab")

// conversation is a scripted peer: it hears what is written to it and says what it was given.
type conversation struct {
	net.Conn
	say   *bytes.Reader
	heard bytes.Buffer
}

func (c *conversation) Read(b []byte) (int, error)  { return c.say.Read(b) }
func (c *conversation) Write(b []byte) (int, error) { return c.heard.Write(b) }

func talk(say ...string) *conversation {
	var all []byte
	for _, s := range say {
		b, _ := hex.DecodeString(s)
		all = append(all, b...)
	}
	return &conversation{say: bytes.NewReader(all)}
}

func readLines[T any](t *testing.T, file string) (list []T) {
	t.Helper()
	f, err := os.Open("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		var v T
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		list = append(list, v)
	}
	if len(list) == 0 {
		t.Fatalf("%s is empty", file)
	}
	return list
}

// nonceIn makes a shaker draw the nonce of a recorded frame.
func nonceIn(frame string) func(*[wire.NonceSize]byte) {
	b, _ := hex.DecodeString(frame)
	return func(n *[wire.NonceSize]byte) { copy(n[:], b[128:160]) }
}

func recordedShaker(t *testing.T, conn net.Conn, id uint8, nonce func(*[wire.NonceSize]byte)) *shaker {
	t.Helper()
	return &shaker{conn: conn, self: &Node{Cluster: recordedCluster, ID: id}, secret: mustSecret(t, recordedSecret, ""), nonce: nonce}
}

// TestRecordedHandshakes plays both sides of handshakes of the reference: with the same nonces we say the
// same bytes, MACs included, and accept the other side's.
func TestRecordedHandshakes(t *testing.T) {
	for _, r := range readLines[struct {
		Dialer, Acceptor         uint8
		Hello, Challenge, Finish string
	}](t, "handshakes.jsonl") {
		peer := talk(r.Challenge)
		who, err := recordedShaker(t, peer, r.Dialer, nonceIn(r.Hello)).dial(r.Acceptor)
		if err != nil || who != r.Acceptor {
			t.Fatalf("dialing side: node %d, %v", who, err)
		}
		if got := hex.EncodeToString(peer.heard.Bytes()); got != r.Hello+r.Finish {
			t.Errorf("dialing side says\n%s\nwant\n%s", got, r.Hello+r.Finish)
		}
		peer = talk(r.Hello, r.Finish)
		who, err = recordedShaker(t, peer, r.Acceptor, nonceIn(r.Challenge)).accept(lower(r.Acceptor))
		if err != nil || who != r.Dialer {
			t.Fatalf("accepting side: node %d, %v", who, err)
		}
		if got := hex.EncodeToString(peer.heard.Bytes()); got != r.Challenge {
			t.Errorf("accepting side says\n%s\nwant\n%s", got, r.Challenge)
		}
	}
}

func lower(than uint8) func(uint8) bool { return func(id uint8) bool { return id < than } }

// TestRecordedRefusals: to what the reference refused we answer the same, byte for byte.
func TestRecordedRefusals(t *testing.T) {
	good := map[string]bool{"good handshake, then silence": true, "finish with another replica byte": true}
	for _, r := range readLines[struct {
		Test           string
		Sent, Answered []string
	}](t, "refusals.jsonl") {
		nonce := freshNonce
		want := ""
		if len(r.Answered) > 0 {
			nonce, want = nonceIn(r.Answered[0]), r.Answered[0]
		}
		peer := talk(r.Sent...)
		_, err := recordedShaker(t, peer, 1, nonce).accept(lower(1))
		if (err == nil) != good[r.Test] {
			t.Errorf("%s: %v", r.Test, err)
		}
		if got := hex.EncodeToString(peer.heard.Bytes()); got != want {
			t.Errorf("%s: answered\n%s\nwant\n%s", r.Test, got, want)
		}
	}
}

// shake runs a handshake between two nodes and returns what each side made of it.
func shake(t *testing.T, dialer, acceptor *shaker, may func(uint8) bool, expect uint8) (dialed, accepted error) {
	t.Helper()
	a, b := net.Pipe()
	dialer.conn, acceptor.conn = a, b
	done := make(chan error, 1)
	go func() {
		_, err := acceptor.accept(may)
		b.Close()
		done <- err
	}()
	a.SetDeadline(time.Now().Add(patience))
	_, dialed = dialer.dial(expect)
	if dialed != nil {
		a.Close()
	}
	return dialed, within(t, "end of the handshake", done)
}

// TestHandshakeRules: who gets in, and with which label who does not.
func TestHandshakeRules(t *testing.T) {
	type side struct {
		id                uint8
		cluster           string
		current, previous string
		tls               bool
		exporter          byte
	}
	make := func(s side) *shaker {
		v := &shaker{self: &Node{Cluster: wire.ClusterID(s.cluster), ID: s.id}, nonce: freshNonce}
		if s.current != "" {
			v.secret = mustSecret(t, s.current, s.previous)
		}
		v.script.TLS, v.script.Exporter[5] = s.tls, s.exporter
		return v
	}
	const one, two = testSecret, otherSecret
	for name, c := range map[string]struct {
		dialer, acceptor side
		expect           uint8
		dialed, accepted string // labels, "" = let in
	}{
		"good":                      {side{1, "c", one, "", false, 0}, side{2, "c", one, "", false, 0}, 2, "", ""},
		"any node":                  {side{1, "c", one, "", false, 0}, side{2, "c", one, "", false, 0}, AnyNode, "", ""},
		"no authentication":         {side{1, "c", "", "", false, 0}, side{2, "c", "", "", false, 0}, 2, "", ""},
		"bound to one session":      {side{1, "c", one, "", true, 9}, side{2, "c", one, "", true, 9}, 2, "", ""},
		"bound to two sessions":     {side{1, "c", one, "", true, 9}, side{2, "c", one, "", true, 8}, 2, refusedMAC, refusedIO},
		"one side bound":            {side{1, "c", one, "", true, 0}, side{2, "c", one, "", false, 0}, 2, refusedMAC, refusedIO},
		"wrong secret":              {side{1, "c", one, "", false, 0}, side{2, "c", two, "", false, 0}, 2, refusedMAC, refusedIO},
		"first step of a change":    {side{1, "c", one, two, false, 0}, side{2, "c", one, "", false, 0}, 2, "", ""},
		"second step, dialer new":   {side{1, "c", two, one, false, 0}, side{2, "c", one, two, false, 0}, 2, "", ""},
		"second step, acceptor new": {side{1, "c", one, two, false, 0}, side{2, "c", two, one, false, 0}, 2, "", ""},
		"third step":                {side{1, "c", two, "", false, 0}, side{2, "c", two, one, false, 0}, 2, "", ""},
		"a step left out":           {side{1, "c", two, "", false, 0}, side{2, "c", one, "", false, 0}, 2, refusedMAC, refusedIO},
		"another cluster":           {side{1, "d", one, "", false, 0}, side{2, "c", one, "", false, 0}, 2, refusedCluster, refusedCluster},
		"higher id dials":           {side{3, "c", one, "", false, 0}, side{2, "c", one, "", false, 0}, 2, refusedDirection, refusedDirection},
		"same id dials":             {side{2, "c", one, "", false, 0}, side{2, "c", one, "", false, 0}, 2, refusedDirection, refusedDirection},
		"front-door dials":          {side{255, "c", one, "", false, 0}, side{2, "c", one, "", false, 0}, 2, refusedDirection, refusedDirection},
		"another node there":        {side{1, "c", one, "", false, 0}, side{2, "c", one, "", false, 0}, 3, refusedIdentity, refusedIO},
		"no nonce":                  {side{1, "c", "", "", false, 0}, side{2, "c", one, "", false, 0}, 2, "", refusedNoAuth},
	} {
		dialed, accepted := shake(t, make(c.dialer), make(c.acceptor), lower(c.acceptor.id), c.expect)
		if label(dialed) != c.dialed || label(accepted) != c.accepted {
			t.Errorf("%s: dialing side %q (%v), accepting side %q (%v); want %q, %q", name, label(dialed), dialed, label(accepted), accepted, c.dialed, c.accepted)
		}
	}
}

func label(err error) string {
	var r *refusal
	if errors.As(err, &r) {
		return r.reason
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// TestReplayedHandshake: what an eavesdropper has recorded opens nothing, in either direction.
func TestReplayedHandshake(t *testing.T) {
	r := readLines[struct{ Hello, Challenge, Finish string }](t, "handshakes.jsonl")[0]
	_, err := recordedShaker(t, talk(r.Hello, r.Finish), 2, freshNonce).accept(lower(2))
	if label(err) != refusedMAC {
		t.Errorf("replayed to the acceptor: %v", err)
	}
	_, err = recordedShaker(t, talk(r.Challenge), 1, freshNonce).dial(2)
	if label(err) != refusedMAC {
		t.Errorf("replayed to the dialer: %v", err)
	}
}

// TestReflectedHandshake: a peer that only sends back what it was sent proves nothing.
func TestReflectedHandshake(t *testing.T) {
	a, b := net.Pipe()
	a.SetDeadline(time.Now().Add(patience))
	go func() {
		var hello [wire.HeaderSize]byte
		_, _ = io.ReadFull(b, hello[:])
		hello[60] = byte(wire.CommandReplicaChallenge)
		_, _ = b.Write(hello[:])
		b.Close()
	}()
	s := &shaker{conn: a, self: &Node{Cluster: testCluster, ID: 1}, secret: mustSecret(t, testSecret, ""), nonce: freshNonce}
	if _, err := s.dial(AnyNode); label(err) != refusedMAC {
		t.Errorf("%v", err)
	}
}

func TestSecretRules(t *testing.T) {
	for name, c := range map[string][2]string{
		"short":          {testSecret[:31], ""},
		"empty":          {"", ""},
		"short previous": {testSecret, otherSecret[:31]},
		"same":           {testSecret, testSecret},
	} {
		if _, err := NewSecret(c[0], c[1]); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// FuzzHandshake gives arbitrary bytes to both sides: they end with an error and write no more than a
// handshake.
func FuzzHandshake(f *testing.F) {
	f.Add(make([]byte, 512), false)
	f.Fuzz(func(t *testing.T, say []byte, accepts bool) {
		c := &conversation{say: bytes.NewReader(say)}
		s := &shaker{conn: c, self: &Node{Cluster: testCluster, ID: 1}, secret: mustSecret(t, testSecret, ""), nonce: freshNonce}
		var err error
		if accepts {
			_, err = s.accept(func(uint8) bool { return true })
		} else {
			_, err = s.dial(AnyNode)
		}
		if err == nil {
			t.Fatal("let in")
		}
		if c.heard.Len() > wire.HeaderSize {
			t.Fatalf("%d bytes written", c.heard.Len())
		}
		c = &conversation{say: bytes.NewReader(say)}
		i := introduction{conn: c, self: s.self}
		if accepts {
			_, _, _ = i.answer(2)
		} else {
			_, _ = i.open(2)
		}
	})
}
