package metadata

import (
	"fmt"
	"strings"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
)

func newUser(s string, p *wire.Permissions) body {
	q := wire.LoggedCreateUser{Name: []byte(s), Hash: []byte("phc"), Status: 1}
	if p != nil {
		q.HasPermissions, q.Permissions = true, p.Append(nil)
	}
	return q
}

func Test138_CreateUser(t *testing.T) {
	s := newLog(t).session(1, RootID)
	for _, c := range []struct {
		name string
		want wire.Code
	}{
		{"ann", 0}, {"ann", 46}, {"iggy", 46}, {"ab", 43}, {strings.Repeat("x", 50), 0}, {strings.Repeat("x", 51), 43},
	} {
		if got := s.do(wire.OpCreateUser, newUser(c.name, nil)); got.Status != 0 || got.Result != c.want {
			t.Errorf("%q: %v, want %v", c.name, got.code(), c.want)
		}
	}
	if u := s.v.UserByName([]byte("ann")); u.ID != 1 || u.PasswordHash != "phc" || !u.Active {
		t.Fatalf("%+v", u)
	}
	odd := wire.LoggedCreateUser{Name: []byte("odd"), Status: 9}
	d, err := wire.DecodeUserDetails(s.must(wire.OpCreateUser, odd))
	if err != nil || d.Status != 9 || !s.v.UserByID(d.ID).Active {
		t.Fatalf("an unknown status is echoed and stored as active: %+v %v", d, err)
	}
	s.must(wire.OpDeleteUser, wire.UserTarget{User: name("ann")})
	if d, _ = wire.DecodeUserDetails(s.must(wire.OpCreateUser, newUser("new", nil))); d.ID != 1 {
		t.Fatalf("id %d", d.ID)
	}
}

func TestUpdateUser(t *testing.T) {
	s := newLog(t).session(1, RootID)
	s.must(wire.OpCreateUser, newUser("ann", nil))
	s.must(wire.OpCreateUser, newUser("bob", nil))
	update := func(who, to string) body {
		q := wire.UpdateUserRequest{User: name(who)}
		if to != "" {
			q.Username = []byte(to)
		}
		return q
	}
	s.must(wire.OpUpdateUser, update("ann", "ann"))
	s.must(wire.OpUpdateUser, update("ann", ""))
	s.want(result(46), wire.OpUpdateUser, update("ann", "bob"))
	s.want(result(43), wire.OpUpdateUser, update("ann", "ab"))
	s.want(result(20), wire.OpUpdateUser, update("eve", "x"))
	s.must(wire.OpUpdateUser, wire.UpdateUserRequest{User: name("ann"), HasStatus: true, Status: 7})
	if !s.v.UserByID(1).Active {
		t.Fatal("an unknown status must be ignored")
	}
	s.must(wire.OpUpdateUser, wire.UpdateUserRequest{User: name("ann"), Username: []byte("amy"), HasStatus: true, Status: 2})
	if u := s.v.UserByID(1); u.Active || u.Name != "amy" || s.v.UserByName([]byte("ann")) != nil {
		t.Fatalf("%+v", u)
	}
}

func Test139_Root(t *testing.T) {
	l := newLog(t)
	root := l.session(1, RootID)
	root.must(wire.OpCreateUser, newUser("adm", &wire.Permissions{Global: wire.GlobalAll}))
	for _, s := range []*session{root, l.session(2, 1)} {
		s.want(result(48), wire.OpDeleteUser, wire.UserTarget{User: number(0)})
		s.want(result(49), wire.OpUpdatePermissions, wire.UpdatePermissionsRequest{User: name("iggy")})
		s.want(result(20), wire.OpDeleteUser, wire.UserTarget{User: name("eve")})
		s.want(result(20), wire.OpUpdatePermissions, wire.UpdatePermissionsRequest{User: name("eve")})
	}
	root.must(wire.OpUpdateUser, wire.UpdateUserRequest{User: number(0), Username: []byte("boss")})
	root.must(wire.OpChangePassword, wire.LoggedChangePassword{User: name("boss"), Hash: []byte("new")})
	if l.v.UserByID(RootID).PasswordHash != "new" {
		t.Fatal("root's password did not change")
	}
}

func Test140_147_148_UserWithoutPermissions(t *testing.T) {
	l := newLog(t)
	root := l.session(1, RootID)
	root.must(wire.OpCreateUser, newUser("ann", nil))
	root.must(wire.OpCreateStream, createStream("a"))
	root.must(wire.OpCreateTopic, createTopic("a", "t", 1))
	ann := l.session(2, 1)
	topic := wire.TopicTarget{Stream: name("a"), Topic: name("t")}
	for _, c := range []struct {
		op   wire.Operation
		b    body
		want wire.Code
	}{
		{wire.OpCreateStream, createStream("b"), 41},
		{wire.OpCreateStream, createStream("a"), 41}, // the right comes before the name
		{wire.OpDeleteStream, wire.StreamTarget{Stream: name("a")}, 41},
		{wire.OpDeleteStream, wire.StreamTarget{Stream: name("none")}, 1009}, // but behind the target
		{wire.OpDeleteTopic, topic, 41},
		{wire.OpPurgeTopic, wire.TopicTarget{Stream: name("a"), Topic: name("none")}, 2010},
		{wire.OpCreateTopic, createTopic("a", "t", 1), 41},
		{wire.OpCreateGroup, wire.CreateGroupRequest{Stream: name("a"), Topic: name("t"), Name: []byte("g")}, 41},
		{wire.OpJoinGroup, wire.GroupTarget{Stream: name("a"), Topic: name("t"), Group: name("none")}, 41},
		{wire.OpCreateUser, newUser("x", nil), 41},
		{wire.OpDeleteUser, wire.UserTarget{User: name("none")}, 41}, // user administration: the right first
		{wire.OpUpdatePermissions, wire.UpdatePermissionsRequest{User: number(0)}, 41},
		{wire.OpChangePassword, wire.LoggedChangePassword{User: name("none"), Hash: []byte("x")}, 20},
		{wire.OpChangePassword, wire.LoggedChangePassword{User: number(0), Hash: []byte("x")}, 41},
		{wire.OpChangePassword, wire.LoggedChangePassword{User: number(1)}, 42},
		{wire.OpChangePassword, wire.LoggedChangePassword{User: name("ann"), Hash: []byte("x")}, 0},
	} {
		if got := ann.do(c.op, c.b); got.Status != 0 || got.Result != c.want {
			t.Errorf("%v: status %d result %d, want result %d", c.op, got.Status, got.Result, c.want)
		}
	}
	if l.v.Client(ann.id).Watermark != ann.request {
		t.Fatal("a rejection must use up its number")
	}
}

func Test141_146_Permissions(t *testing.T) {
	l := newLog(t)
	root := l.session(1, RootID)
	grant := func(id uint32, p *wire.Permissions) {
		q := wire.UpdatePermissionsRequest{User: number(id)}
		if p != nil {
			q.Permissions = p.Append(nil)
		}
		root.must(wire.OpUpdatePermissions, q)
	}
	root.must(wire.OpCreateUser, newUser("ann", nil))
	onStream := func(bits wire.StreamRights, topics ...wire.TopicPermissions) *wire.Permissions {
		return &wire.Permissions{Streams: []wire.StreamPermissions{{Stream: 1, Rights: bits, Topics: topics}}}
	}
	type want struct {
		right         Right
		stream, topic uint32
		ok            bool
	}
	for _, c := range []struct {
		name string
		p    *wire.Permissions
		want []want
	}{
		{"none", nil, []want{{RightPoll, 1, 1, false}, {RightReadUsers, 0, 0, false}}},
		{"141: global poll and send", &wire.Permissions{Global: wire.GlobalPollMessages | wire.GlobalSendMessages},
			[]want{{RightPoll, 9, 9, true}, {RightSend, 9, 9, true}, {RightReadTopic, 9, 9, false}}},
		{"142: stream rights", onStream(wire.StreamManage),
			[]want{{RightManageStream, 1, 0, true}, {RightManageStream, 2, 0, false}, {RightSend, 1, 5, true}, {RightSend, 2, 5, false}}},
		{"142: topic rights", onStream(0, wire.TopicPermissions{Topic: 3, Rights: wire.TopicManage}),
			[]want{{RightManageTopic, 1, 3, true}, {RightManageTopic, 1, 4, false}, {RightManageTopic, 2, 3, false}, {RightListTopics, 1, 0, false}}},
		{"143: a restrictive entry takes nothing", &wire.Permissions{Global: wire.GlobalReadTopics, Streams: onStream(0).Streams},
			[]want{{RightReadTopic, 1, 1, true}, {RightPoll, 1, 1, true}, {RightSend, 1, 1, false}}},
		{"144: the stream list is global", onStream(0x3f), []want{{RightListStreams, 0, 0, false}, {RightReadStream, 1, 0, true}}},
		{"145: groups need topic read rights", onStream(0, wire.TopicPermissions{Topic: 0, Rights: wire.TopicPollMessages}),
			[]want{{RightReadTopic, 1, 0, false}, {RightPoll, 1, 0, true}}},
		{"manage_topics of a stream does not read it", onStream(wire.StreamManageTopics),
			[]want{{RightReadStream, 1, 0, false}, {RightListTopics, 1, 0, true}, {RightCreateTopic, 1, 0, true}}},
	} {
		grant(1, c.p)
		for _, w := range c.want {
			if got := l.v.Can(1, w.right, w.stream, w.topic); got != w.ok {
				t.Errorf("%s: right %d on %d/%d is %v", c.name, w.right, w.stream, w.topic, got)
			}
		}
		snapshot(t, l.v)
	}
	if l.v.Can(77, RightPoll, 0, 0) || !l.v.Can(RootID, RightManageUsers, 0, 0) {
		t.Fatal("an unknown user can, or root cannot")
	}
}

func newToken(s string, expiry uint64, hash int) body {
	return wire.LoggedCreateToken{Name: []byte(s), Expiry: expiry, Hash: []byte(fmt.Sprintf("%064x", hash))}
}

func Test150_152_Tokens(t *testing.T) {
	l := newLog(t)
	root := l.session(1, RootID)
	root.must(wire.OpCreateUser, newUser("ann", nil))
	ann := l.session(2, 1)
	if p := root.must(wire.OpCreateToken, newToken("ci", 0, 1)); len(p) != 0 {
		t.Fatal("the committed reply must not hold a secret")
	}
	ann.must(wire.OpCreateToken, newToken("ci", ^uint64(0), 2)) // names are per user
	ann.want(result(51), wire.OpCreateToken, newToken("ci", 0, 3))
	ann.want(result(56), wire.OpCreateToken, newToken("overflow", ^uint64(0)-1, 4))
	ann.must(wire.OpCreateToken, newToken("soon", 5, 5))
	if tok := l.v.TokenByHash(fmt.Sprintf("%064x", 2)); tok == nil || tok.UserID != 1 || tok.ExpiresAt != 0 || tok.Expired(^uint64(0)) {
		t.Fatalf("%+v", tok)
	}
	ann.want(result(20), wire.OpDeleteToken, wire.DeleteTokenRequest{Name: []byte("none")})
	ann.must(wire.OpDeleteToken, wire.DeleteTokenRequest{Name: []byte("ci")})
	if l.v.TokenByHash(fmt.Sprintf("%064x", 1)) == nil || l.v.TokenByHash(fmt.Sprintf("%064x", 2)) != nil {
		t.Fatal("the wrong token was deleted")
	}
	snapshot(t, l.v)
	for i := l.v.UserByID(1).TokenCount(); i < wire.DefaultMaxTokens; i++ {
		ann.must(wire.OpCreateToken, newToken(fmt.Sprint("n", i), 0, 100+i))
	}
	ann.want(statusCode(52), wire.OpCreateToken, newToken("soon", 0, 9)) // the limit comes before the name
	ann.want(statusCode(52), wire.OpCreateToken, newToken("more", 0, 9))
}

func TestTokenExpiryIsCheckedAgain(t *testing.T) {
	l := newLog(t)
	s := l.session(1, RootID)
	s.must(wire.OpCreateToken, newToken("ci", 5, 1))
	made := l.now
	expired := func(now uint64) (list []*Token) {
		for tok := range l.v.ExpiredTokens(now) {
			list = append(list, tok)
		}
		return list
	}
	if len(expired(made+4)) != 0 || len(expired(made+5)) != 1 {
		t.Fatal("expired when expiry <= now")
	}
	cleaner := LogExpireToken(nil, expired(made + 5)[0])
	s.must(wire.OpDeleteToken, wire.DeleteTokenRequest{Name: []byte("ci")})
	s.must(wire.OpCreateToken, newToken("ci", 1000, 2))
	clean := func() { l.commit(wire.PrepareHeader{Operation: wire.OpDeleteToken}, cleaner) }
	clean()
	if l.v.UserByID(0).TokenCount() != 1 {
		t.Fatal("the cleaner took the new token")
	}
	l.now += 2000
	clean()
	if l.v.UserByID(0).TokenCount() != 0 || len(expired(^uint64(0))) != 0 {
		t.Fatal("the expired token stays")
	}
}

func Test36_154_DeletedUser(t *testing.T) {
	l := newLog(t)
	root := l.session(1, RootID)
	root.must(wire.OpCreateUser, newUser("ann", &wire.Permissions{Global: wire.GlobalAll}))
	ann := l.session(2, 1)
	ann.must(wire.OpCreateStream, createStream("a"))
	ann.must(wire.OpCreateToken, newToken("ci", 77, 1))
	root.must(wire.OpDeleteUser, wire.UserTarget{User: name("ann")})
	if l.v.TokenByHash(fmt.Sprintf("%064x", 1)) != nil {
		t.Fatal("a token survives its user")
	}
	// Whoever gets the id next must not get the session.
	root.must(wire.OpCreateUser, newUser("eve", &wire.Permissions{Global: wire.GlobalAll}))
	if u := l.v.UserByName([]byte("eve")); u.ID != ann.user {
		t.Fatalf("eve has id %d", u.ID)
	}
	ann.want(result(41), wire.OpCreateStream, createStream("b"))
	ann.want(result(41), wire.OpCreateToken, newToken("x", 0, 2))
	ann.want(result(41), wire.OpChangePassword, wire.LoggedChangePassword{User: name("eve"), Hash: []byte("x")})
	ann.want(result(41), wire.OpDeleteToken, wire.DeleteTokenRequest{Name: []byte("x")})
	if _, acts := l.v.UserOf(ann.id, l.v.Client(ann.id).Epoch); acts || l.v.UserByName([]byte("eve")).TokenCount() != 0 {
		t.Fatal("the session acts for the new user")
	}
	if v := l.v.PreflightRegister(ann.id, 1); v.Action != ActionAdmit {
		t.Fatalf("the client id stays taken: %+v", v)
	}
	snapshot(t, l.v)
}
