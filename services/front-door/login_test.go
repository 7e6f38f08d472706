package frontdoor

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/wire"
)

func TestLoginOutcomes(t *testing.T) {
	w := start(t, nil)
	root := w.root(t)
	create := func(name string, status wire.UserStatus) {
		root.ok(root.call(wire.OpCreateUser, 0, wire.CreateUserRequest{
			Username: []byte(name), Password: []byte("secret"), Status: status,
		}.Append(nil)))
	}
	create("awake", wire.UserActive)
	create("asleep", wire.UserInactive)
	prefix := wire.LoginPrefix{ProtocolVersion: wire.ProtocolVersion, SDKName: []byte("x"), SDKVersion: []byte("1")}
	old := prefix
	old.ProtocolVersion = wire.PackVersion(0, 10, 9)

	for _, c := range []struct {
		what string
		body []byte
		want wire.EvictionReason
	}{
		{"right", loginBody("awake", "secret"), 0},
		{"wrong password", loginBody("awake", "Secret"), wire.EvictInvalidCredentials},
		{"unknown user", loginBody("nobody", "secret"), wire.EvictInvalidCredentials},
		{"inactive user", loginBody("asleep", "secret"), wire.EvictInvalidCredentials},
		{"short password", loginBody("awake", "se"), wire.EvictInvalidCredentials},
		// The bytes of an empty password also read as a token login with the name for a token.
		{"empty password", loginBody("awake", ""), wire.EvictInvalidToken},
		{"unknown token", tokenBody("no-such-token"), wire.EvictInvalidToken},
		{"empty body", nil, wire.EvictMalformedLogin},
		{"prefix only", prefix.Append(nil), wire.EvictMalformedLogin},
		{"old version, prefix only", old.Append(nil), wire.EvictIncompatibleProtocol},
	} {
		c0 := w.dial(t)
		a := c0.call(wire.OpRegister, 0, c.body)
		if a.evicted != c.want || a.Status != 0 {
			t.Errorf("%s: eviction %v status %v, want %v", c.what, a.evicted, a.Status, c.want)
		}
		if a.evicted == wire.EvictIncompatibleProtocol && a.window != [2]uint32{wire.ProtocolVersion, wire.MinProtocolVersion} {
			t.Errorf("%s: window %v", c.what, a.window)
		}
		if c.want != 0 {
			c0.login("awake", "secret") // the same socket goes on
		}
	}
}

func TestTokenLogin(t *testing.T) {
	w := start(t, nil)
	root := w.root(t)
	token, err := wire.DecodeRawToken(root.ok(root.call(wire.OpCreateToken, 0, wire.CreateTokenRequest{Name: []byte("ci")}.Append(nil))))
	if err != nil || len(token) != 68 {
		t.Fatalf("token %q: %v", token, err)
	}
	c := w.dial(t)
	a := c.call(wire.OpRegister, 0, tokenBody(token))
	reply, err := wire.DecodeLoginReply(a.body)
	if err != nil || reply.UserID != 0 || reply.Session == 0 {
		t.Fatalf("login by token: %+v, %v, eviction %v", reply, err, a.evicted)
	}
	if w.meta.View().TokenByHash(hashToken([]byte(token))) == nil {
		t.Error("the stored hash is not that of the token")
	}
	// A repeat must not show the token again.
	root.request--
	if again := root.call(wire.OpCreateToken, 0, wire.CreateTokenRequest{Name: []byte("ci")}.Append(nil)); again.result() != wire.CodePersonalAccessTokenAlreadyExists {
		t.Errorf("repeat: %v", again.result())
	}
}

func TestSecondLoginOnBoundConnection(t *testing.T) {
	w := start(t, nil)
	c := w.root(t)
	session := c.session
	a := c.call(wire.OpRegister, 0, loginBody(rootName, rootPassword))
	if reply, err := wire.DecodeLoginReply(a.body); err != nil || reply.Session != session {
		t.Fatalf("second login: %+v %v", reply, err)
	}
	if a := c.call(wire.OpRegister, 0, loginBody(rootName, "wrong")); a.evicted != wire.EvictInvalidCredentials {
		t.Fatalf("wrong password: %v", a.evicted)
	}
	c.ok(c.read(wire.CmdGetStreams, nil))
}

// A client id that logs in elsewhere takes its session along: the older connection is fenced, and
// neither its logout nor its end touches the newer session.
func TestSupersededConnection(t *testing.T) {
	w := start(t, nil)
	older := w.root(t)
	newer := w.dial(t)
	newer.id = older.id
	newer.login(rootName, rootPassword)
	if a := older.read(wire.CmdGetStreams, nil); a.Status != wire.CodeUnauthenticated {
		t.Errorf("read of the older connection: %v", a.Status)
	}
	if a := older.call(wire.OpCreateStream, 0, wire.CreateStreamRequest{Name: []byte("s")}.Append(nil)); a.evicted != wire.EvictSessionTooLow {
		t.Errorf("write of the older connection: %v", a.evicted)
	}
	newer.topic("other", "t", 1)
	if a := older.call(wire.OpSendMessages, 0, sendBody(t, "other", "t", wire.Partitioning{Kind: wire.PartitioningPartition}, "m")); a.evicted != wire.EvictSessionTooLow {
		t.Errorf("send of the older connection: %v", a.evicted)
	}
	older.ok(older.call(wire.OpLogout, 0, nil))
	older.sock.Close()
	eventually(t, "the older connection to be forgotten", func() bool { return w.core.clients.len() == 1 })
	newer.ok(newer.call(wire.OpCreateStream, 0, wire.CreateStreamRequest{Name: []byte("s")}.Append(nil)))
}

func TestDisconnectLogsOutAndStopDoesNot(t *testing.T) {
	w := start(t, nil)
	c := w.root(t)
	stays := w.root(t)
	c.sock.Close()
	eventually(t, "the session to end", func() bool { return w.meta.View().Client(c.id) == nil })
	w.Stop(t.Context())
	if w.meta.View().Client(stays.id) == nil {
		t.Error("an orderly stop ended a session that its client may claim again")
	}
}

// More logins at once than the queue holds are refused with the retryable code; none goes without
// an answer, and whoever repeats gets in.
func TestLoginStorm(t *testing.T) {
	w := start(t, func(c *Config) { c.PasswordWorkers, c.PasswordQueue = 1, 2 })
	held := &passwordJob{phc: "no hash", done: make(chan struct{})} // keeps the worker until somebody was refused
	w.core.passwords.submit(held)
	goOn := sync.OnceFunc(func() { <-held.done })
	const storm, users = 24, 6 // users are more than worker and queue hold: connections of one share a place
	for i := range users {
		w.meta.createUser(t, fmt.Sprintf("user-%d", i), "secret")
	}
	var group sync.WaitGroup
	for i := range storm {
		c := w.dial(t)
		group.Go(func() {
			for {
				a := c.call(wire.OpRegister, 0, loginBody(fmt.Sprintf("user-%d", i%users), "secret"))
				if a.evicted == 0 && a.result() == 0 {
					return
				}
				if a.result() != wire.CodeTransientNotAccepted {
					t.Errorf("eviction %v, result %v", a.evicted, a.result())
					return
				}
				goOn()
			}
		})
	}
	group.Wait()
	if got := w.meta.View().Counts().Clients; got != storm {
		t.Errorf("%d sessions, want %d", got, storm)
	}
}

// The password of a user is computed once; a changed hash makes the memory of it useless.
func TestKnownPassword(t *testing.T) {
	p := newPasswords(1, 1)
	defer p.Close()
	first, second := HashPassword([]byte("secret")), HashPassword([]byte("secret"))
	j := &passwordJob{user: 3, password: []byte("secret"), phc: first, done: make(chan struct{}, 1)}
	p.submit(j)
	<-j.done
	if !j.ok {
		t.Fatal("right password refused")
	}
	if !slices.Equal(j.password, make([]byte, len("secret"))) {
		t.Error("the password was left in memory")
	}
	if !p.known(3, []byte("secret"), first) {
		t.Error("a verified password was not remembered")
	}
	for _, c := range []struct {
		user          uint32
		password, phc string
	}{{3, "secret", second}, {4, "secret", first}, {3, "Secret", first}} {
		if p.known(c.user, []byte(c.password), c.phc) {
			t.Errorf("known: %+v", c)
		}
	}
}

// Connections that bring the same password at the same time share one computation and one place in the queue.
func TestSharedVerification(t *testing.T) {
	p := newPasswords(1, 1)
	defer p.Close()
	held := &passwordJob{phc: "no hash", done: make(chan struct{})}
	p.submit(held)
	for len(p.jobs) > 0 { // until the worker has it
		runtime.Gosched()
	}
	phc := HashPassword([]byte("secret"))
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			j := passwordJob{user: 3, password: []byte("secret"), phc: phc}
			if p.compute(&j); !j.ok || j.busy {
				t.Errorf("right password: ok %v, busy %v", j.ok, j.busy)
			}
			if !slices.Equal(j.password, make([]byte, len("secret"))) {
				t.Error("the password was left in memory")
			}
		})
	}
	other := passwordJob{user: 3, password: []byte("other"), phc: phc}
	for !other.busy { // the queue holds one, which may not have come yet
		select {
		case <-time.After(time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("the queue is never full")
		}
		if len(p.jobs) == cap(p.jobs) {
			p.compute(&other)
		}
	}
	<-held.done
	all.Wait()
}

func TestVerifyPassword(t *testing.T) {
	hash := HashPassword([]byte("secret"))
	if !VerifyPassword([]byte("secret"), hash) || VerifyPassword([]byte("secre"), hash) {
		t.Error("verification is wrong")
	}
	for _, bad := range []string{"", "$argon2id$", "secret", hash[:len(hash)-4], "$argon2i" + hash[9:], hash + "$"} {
		if VerifyPassword([]byte("secret"), bad) {
			t.Errorf("%q accepted", bad)
		}
	}
}

// Silent members of consumer groups are evicted, told so without being asked, and may come back on
// the same socket; silent others are left alone.
func TestHeartbeat(t *testing.T) {
	w := start(t, func(c *Config) { c.Heartbeat = 200 * time.Millisecond })
	member, idle := w.root(t), w.root(t)
	member.topic("s", "t", 1)
	member.ok(member.call(wire.OpCreateGroup, 0, wire.CreateGroupRequest{Stream: wire.NamedID("s"), Topic: wire.NamedID("t"), Name: []byte("g")}.Append(nil)))
	target := wire.GroupTarget{Stream: wire.NamedID("s"), Topic: wire.NamedID("t"), Group: wire.NamedID("g")}.Append(nil)
	member.ok(member.call(wire.OpJoinGroup, 0, target))
	if a := member.next(); a.evicted != wire.EvictStaleClient {
		t.Fatalf("pushed frame: %+v", a)
	}
	if g, _ := w.meta.View().Group(wire.NamedID("s"), wire.NamedID("t"), wire.NamedID("g")); len(g.Members) != 0 {
		t.Error("still a member")
	}
	if a := member.read(wire.CmdGetMe, nil); a.Status != wire.CodeUnauthenticated {
		t.Errorf("read after the eviction: %v", a.Status)
	}
	if a := member.call(wire.OpJoinGroup, 0, target); a.evicted != wire.EvictNoSession {
		t.Errorf("write after the eviction: %v", a.evicted)
	}
	member.login(rootName, rootPassword)
	idle.ok(idle.read(wire.CmdGetStreams, nil))
}

// A login is refused only after the front-door itself has repeated what may pass.
func TestLoginOutlastsBusyMetadata(t *testing.T) {
	w := start(t, nil)
	refusals := 5
	w.meta.answer(func(c *link.Call) bool {
		if refusals--; refusals < 0 {
			return false
		}
		c.Status, c.Reason = wire.CodeTransientNotAccepted, link.ReasonBusy
		return true
	})
	w.root(t)
}
