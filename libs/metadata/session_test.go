package metadata

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
)

func (l *log) preflight(s *session, request uint64, checksum wire.U128) Verdict {
	return l.v.Preflight(s.id, l.v.Client(s.id).Epoch, request, checksum)
}

func Test17_18_Rebind(t *testing.T) {
	l := newLog(t)
	root := l.session(1, RootID)
	root.must(wire.OpCreateUser, newUser("ann", nil))
	root.must(wire.OpCreateStream, createStream("a"))
	root.must(wire.OpCreateTopic, createTopic("a", "t", 2))
	root.must(wire.OpCreateGroup, wire.CreateGroupRequest{Stream: name("a"), Topic: name("t"), Name: []byte("g")})
	root.must(wire.OpJoinGroup, wire.GroupTarget{Stream: name("a"), Topic: name("t"), Group: name("g")})
	old := *l.v.Client(root.id)
	if v := l.v.PreflightRegister(root.id, 1); v.Action != ActionEvict || v.Evict != wire.EvictSessionError {
		t.Fatalf("another user's login: %+v", v)
	}
	if r := l.login(root.id, 1); r.Code != wire.CodeUnauthenticated || l.v.Client(root.id).Epoch != old.Epoch {
		t.Fatalf("a Register of another user must not touch the session: %v", r.Code)
	}
	l.login(root.id, RootID)
	c := l.v.Client(root.id)
	if c.Epoch <= old.Epoch || c.Watermark != old.Watermark || len(c.Replies) != RepliesPerClient {
		t.Fatalf("rebound: %+v", c)
	}
	if len(l.v.Memberships(root.id)) != 1 {
		t.Fatal("memberships must be kept")
	}
	if v := l.v.Preflight(root.id, old.Epoch, 99, wire.U128{}); v.Action != ActionEvict || v.Evict != wire.EvictSessionTooLow {
		t.Fatalf("older epoch: %+v", v)
	}
	if v := l.v.Preflight(root.id, c.Epoch+1, 99, wire.U128{}); v.Action != ActionRefuse || v.Code != wire.CodeTransientNotAccepted {
		t.Fatalf("newer epoch: %+v", v)
	}
	if v := l.v.Preflight(client(99), 1, 1, wire.U128{}); v.Action != ActionEvict || v.Evict != wire.EvictNoSession {
		t.Fatalf("no entry: %+v", v)
	}
	snapshot(t, l.v)
}

func Test20_24_Repeats(t *testing.T) {
	l := newLog(t)
	s := l.session(1, RootID)
	frames := map[uint64][]byte{}
	for i := range 8 {
		s.request += 2 // 23: numbers may skip
		s.do(wire.OpCreateStream, createStream(fmt.Sprint("s", i%7)))
		c := l.v.Client(s.id)
		frames[s.request] = c.Replies[len(c.Replies)-1].Append(nil)
	}
	for range 2 { // 21: and after a restart
		for request := s.request; request > 0; request-- {
			v := l.preflight(s, request, wire.U128{})
			cached := frames[request] != nil && request > s.request-3*5
			switch {
			case cached && (v.Action != ActionReplay || !bytes.Equal(v.Reply.Append(nil), frames[request])):
				t.Fatalf("%d: %+v", request, v)
			case !cached && (v.Action != ActionResult || v.Code != wire.CodeRequestAlreadyApplied):
				t.Fatalf("%d: %+v", request, v)
			}
		}
		if v := l.preflight(s, s.request+1, wire.U128{}); v.Action != ActionAdmit {
			t.Fatalf("the next number: %+v", v)
		}
		l.v, _ = DecodeSnapshot(snapshot(t, l.v), Limits{})
	}
}

func TestNumberReuseWithOtherBytes(t *testing.T) {
	l := newLog(t)
	s := l.session(1, RootID)
	sum := wire.U128{Lo: 77}
	l.commit(wire.PrepareHeader{Operation: wire.OpCreateStream, Client: s.id, Request: 1, RequestChecksum: sum}, createStream("a").Append(nil))
	for _, c := range []struct {
		checksum wire.U128
		want     Action
	}{{sum, ActionReplay}, {wire.U128{}, ActionReplay}, {wire.U128{Lo: 78}, ActionRefuse}} {
		if v := l.preflight(s, 1, c.checksum); v.Action != c.want {
			t.Errorf("%v: %+v", c.checksum, v)
		}
	}
	s.request = 1
	s.must(wire.OpCreateToken, newToken("ci", 0, 1))
	h := wire.RequestHeader{Client: s.id, Session: 1, Request: s.request, Operation: wire.OpCreateToken}
	if v := l.v.PreflightRequest(&h); v.Action != ActionResult || v.Code != wire.CodePersonalAccessTokenAlreadyExists {
		t.Fatalf("a repeated CreateToken: %+v", v)
	}
	h.Operation = wire.OpCreateStream
	if v := l.v.PreflightRequest(&h); v.Action != ActionReplay {
		t.Fatalf("another operation under its number: %+v", v)
	}
}

// A full table refuses newcomers; where one is admitted all the same, the victim's watermark is kept, so that a
// request it repeats after its next login does not run twice.
func Test25_FullTable(t *testing.T) {
	l := newLog(t)
	l.v = New(RootUser{"iggy", rootHash}, Limits{Clients: 2})
	a, b := l.session(1, RootID), l.session(2, RootID)
	a.must(wire.OpCreateStream, createStream("a"))
	b.must(wire.OpCreateStream, createStream("b"))
	v := l.v.PreflightRegister(client(3), RootID)
	if v.Action != ActionFull || v.Code != wire.CodeTransientNotAccepted || v.Victim != a.id {
		t.Fatalf("verdict: %+v", v)
	}
	if v := l.v.PreflightRegister(a.id, RootID); v.Action != ActionAdmit {
		t.Fatalf("who has an entry may log in again: %+v", v)
	}
	l.session(3, RootID)
	if l.v.Client(a.id) != nil || l.v.Client(b.id) == nil || l.v.Client(client(3)).Slot != 0 {
		t.Fatal("the least recently committed client goes, its slot is used again")
	}
	l.v, _ = DecodeSnapshot(snapshot(t, l.v), Limits{Clients: 2})
	l.login(a.id, RootID) // pushes out b
	if v := l.preflight(a, 1, wire.U128{}); v.Action != ActionReplay {
		t.Fatalf("the evicted client's request would run again: %+v", v)
	}
	if l.v.Client(b.id) != nil {
		t.Fatal("the table grew over its capacity")
	}
	for i := range uint64(20) {
		l.login(client(100+i), RootID)
	}
	if l.v.retired.Len() > 2 || l.v.retiredAt.Len() != l.v.retired.Len() || l.v.clients.Len() != 2 {
		t.Fatalf("%d retired", l.v.retired.Len())
	}
	snapshot(t, l.v)
}

func TestLogout(t *testing.T) {
	l := newLog(t)
	root, other := l.session(1, RootID), l.session(2, RootID)
	root.must(wire.OpCreateStream, createStream("a"))
	for _, topic := range []string{"t", "u"} {
		root.must(wire.OpCreateTopic, createTopic("a", topic, 4))
		root.must(wire.OpCreateGroup, wire.CreateGroupRequest{Stream: name("a"), Topic: name(topic), Name: []byte("g")})
		target := wire.GroupTarget{Stream: name("a"), Topic: name(topic), Group: name("g")}
		root.must(wire.OpJoinGroup, target)
		other.must(wire.OpJoinGroup, target)
	}
	before := l.v.Revision
	if r := l.logout(root.id); len(r.Body) != 0 {
		t.Fatal("a Logout has no body")
	}
	if l.v.Revision != before+1 || l.v.Client(root.id) != nil || l.v.Memberships(root.id) != nil {
		t.Fatalf("revision +%d", l.v.Revision-before)
	}
	for _, k := range l.v.Memberships(other.id) {
		if g := l.v.GroupByKey(k); len(g.Members) != 1 || len(g.Members[0].Partitions) != 4 {
			t.Fatalf("%+v", g)
		}
	}
	l.logout(root.id) // once more, from a late disconnect
	if l.v.Revision != before+1 {
		t.Fatal("nothing was left to do")
	}
	root.login(root.id, RootID)
	if l.v.Client(root.id).Watermark != 0 {
		t.Fatal("a Logout forgets the watermark")
	}
}

func TestWatermarkOnlyMovesUp(t *testing.T) {
	l := newLog(t)
	s := l.session(1, RootID)
	for _, request := range []uint64{7, 3} {
		l.commit(wire.PrepareHeader{Operation: wire.OpCreateStream, Client: s.id, Request: request, RequestChecksum: wire.U128{Lo: request}}, nil)
	}
	if c := l.v.Client(s.id); c.Watermark != 7 || c.WatermarkChecksum.Lo != 7 {
		t.Fatalf("%+v", c)
	}
}
