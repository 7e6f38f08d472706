package metadatareplica

import (
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

const claimLimit = 30_000_000 // µs

func newClaimed(t *testing.T) *roster {
	r := &roster{t: t, now: started}
	r.Replica = openWith(t, vfs.NewMem(1), func(c *Config) {
		c.Claims, c.SessionClaim = true, 30*time.Second
		c.Engine.Clock = func() uint64 { return r.now }
	})
	return r
}

// claim tells the primary; true when it wants to hear everything.
func (r *roster) claim(q link.Claims) (again bool) {
	r.t.Helper()
	c := r.internal(link.InternalClaims, q.Append(nil))
	if c.Status != 0 {
		r.t.Fatal(c.Status)
	}
	return len(c.Out) == 1 && c.Out[0] == link.ClaimsAgain
}

func (r *roster) sessions() (n int) {
	r.Engine().Do(r.sweep)
	for range r.View().Clients() {
		n++
	}
	return n
}

// Sessions of a front-door that is gone are ended after the interval; sessions that are claimed are not.
func TestUnclaimedSessions(t *testing.T) {
	r := newClaimed(t)
	a, b := wire.U128{Lo: 1}, wire.U128{Lo: 2}
	sa, sb := serve(t, r.Replica, login(a)).Op, serve(t, r.Replica, login(b)).Op
	r.claim(link.Claims{Door: 1, Held: []link.Claim{{Client: a, Session: sa}}})
	r.claim(link.Claims{Door: 2, Held: []link.Claim{{Client: b, Session: sb}}})
	if n := r.sessions(); n != 2 {
		t.Fatalf("%d sessions", n)
	}
	for sequence := range uint64(8) { // door 2 is killed
		r.now += claimLimit / 4
		if again := r.claim(link.Claims{Door: 1, Sequence: sequence + 1}); again {
			t.Fatalf("claims %d are not taken", sequence+1)
		}
		r.sessions()
	}
	if r.sessions() != 1 || r.View().Client(a) == nil {
		t.Errorf("%d sessions are left", r.sessions())
	}
	r.claim(link.Claims{Door: 1, Sequence: 9, Dropped: []link.Claim{{Client: a, Session: sa}}})
	r.sessions()
	r.now += claimLimit
	if n := r.sessions(); n != 0 {
		t.Errorf("%d sessions are left of what was dropped", n)
	}
}

// A new primary waits until it can have been told.
func TestClaimsAtANewPrimary(t *testing.T) {
	r := newClaimed(t)
	a := wire.U128{Lo: 1}
	session := serve(t, r.Replica, login(a)).Op
	r.claim(link.Claims{Door: 1, Held: []link.Claim{{Client: a, Session: session}}})
	r.now += 10 * claimLimit
	r.Role(false, 1)
	if n := r.sessions(); n != 1 {
		t.Fatal("a backup ended a session")
	}
	r.Role(true, 2)
	if !r.claim(link.Claims{Door: 1, Sequence: 1}) {
		t.Error("a new primary knows what was claimed before")
	}
	r.now += claimLimit - 1
	if n := r.sessions(); n != 1 {
		t.Error("a session ended before the new primary could be told of it")
	}
	r.claim(link.Claims{Door: 1, Held: []link.Claim{{Client: a, Session: session}}})
	r.now++
	if n := r.sessions(); n != 1 {
		t.Error("a claimed session ended")
	}
}

// A claim names a session: an older one of the client does not hold a newer one, and a front-door that
// drops an older one does not drop a newer one that another front-door holds.
func TestClaimsNameSessions(t *testing.T) {
	r := newClaimed(t)
	a := wire.U128{Lo: 1}
	first := serve(t, r.Replica, login(a)).Op
	r.claim(link.Claims{Door: 1, Held: []link.Claim{{Client: a, Session: first}}})
	second := serve(t, r.Replica, login(a)).Op
	r.claim(link.Claims{Door: 2, Held: []link.Claim{{Client: a, Session: second}}})
	r.claim(link.Claims{Door: 1, Sequence: 1, Dropped: []link.Claim{{Client: a, Session: first}}})
	r.claim(link.Claims{Door: 1}) // door 1 says again that it holds nothing
	r.sessions()
	r.now += claimLimit
	r.claim(link.Claims{Door: 2, Sequence: 1})
	if n := r.sessions(); n != 1 {
		t.Error("the newer session ended with the older one")
	}
	r.claim(link.Claims{Door: 2, Held: []link.Claim{{Client: a, Session: first}}})
	r.sessions()
	r.now += claimLimit
	r.claim(link.Claims{Door: 2, Sequence: 1})
	if n := r.sessions(); n != 0 {
		t.Error("a claim of the older session holds the newer one")
	}
}

// Claims whose predecessor was lost are asked for again.
func TestClaimsInSequence(t *testing.T) {
	r := newClaimed(t)
	if !r.claim(link.Claims{Door: 1, Sequence: 1}) || r.claim(link.Claims{Door: 1}) || !r.claim(link.Claims{Door: 1, Sequence: 2}) ||
		r.claim(link.Claims{Door: 1, Sequence: 1}) || !r.claim(link.Claims{Door: 1, Sequence: 1}) {
		t.Error("claims are taken out of sequence, or not in it")
	}
	if c := r.internal(link.InternalClaims, []byte("what")); c.Status != wire.CodeInvalidCommand {
		t.Errorf("status %v", c.Status)
	}
}

// A full table refuses newcomers before it gives up a session that a front-door holds.
func TestClaimedSessionsStayInAFullTable(t *testing.T) {
	r := &roster{t: t, now: started}
	r.Replica = openWith(t, vfs.NewMem(1), func(c *Config) {
		c.Claims, c.SessionClaim, c.Limits.Clients = true, 30*time.Second, 2
		c.Engine.Clock = func() uint64 { return r.now }
	})
	a, b := wire.U128{Lo: 1}, wire.U128{Lo: 2}
	session := serve(t, r.Replica, login(a)).Op
	serve(t, r.Replica, login(b))
	r.claim(link.Claims{Door: 1, Held: []link.Claim{{Client: a, Session: session}}})
	newcomer := login(wire.U128{Lo: 3})
	if r.Serve(newcomer); newcomer.Status != wire.CodeTransientNotAccepted {
		t.Errorf("status %v", newcomer.Status)
	}
	r.now += claimLimit // the front-door is silent
	serve(t, r.Replica, login(wire.U128{Lo: 3}))
	if r.View().Client(a) != nil || r.View().Client(b) == nil {
		t.Error("another session than the quietest left")
	}
}
