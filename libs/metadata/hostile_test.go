package metadata

import (
	"bytes"
	"errors"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
)

// clientOps are the operations a client may send to the metadata plane.
var clientOps = []wire.Operation{
	wire.OpCreateStream, wire.OpUpdateStream, wire.OpDeleteStream, wire.OpPurgeStream,
	wire.OpCreateTopic, wire.OpUpdateTopic, wire.OpDeleteTopic, wire.OpPurgeTopic,
	wire.OpCreatePartitions, wire.OpDeletePartitions, wire.OpDeleteSegments,
	wire.OpCreateGroup, wire.OpDeleteGroup, wire.OpJoinGroup, wire.OpLeaveGroup,
	wire.OpCreateUser, wire.OpUpdateUser, wire.OpDeleteUser, wire.OpChangePassword, wire.OpUpdatePermissions,
	wire.OpCreateToken, wire.OpDeleteToken,
}

var loggedOps = []wire.Operation{
	wire.OpRegister, wire.OpLogout, wire.OpCreateTopicWithAssignments, wire.OpCreatePartitionsWithAssignments,
	wire.OpCompleteRevocation, wire.OpTruncatePartition,
	wire.OpCreateStream, wire.OpUpdateStream, wire.OpDeleteStream, wire.OpPurgeStream,
	wire.OpUpdateTopic, wire.OpDeleteTopic, wire.OpPurgeTopic, wire.OpDeletePartitions,
	wire.OpCreateGroup, wire.OpDeleteGroup, wire.OpJoinGroup, wire.OpLeaveGroup,
	wire.OpCreateUser, wire.OpUpdateUser, wire.OpDeleteUser, wire.OpChangePassword, wire.OpUpdatePermissions,
	wire.OpCreateToken, wire.OpDeleteToken,
}

// populated has at least one of everything.
func populated(t testing.TB) *log {
	s := groupOf(t, 3)
	rights := &wire.Permissions{Global: wire.GlobalReadTopics, Streams: []wire.StreamPermissions{
		{Stream: 0, Rights: wire.StreamRead, Topics: []wire.TopicPermissions{{Topic: 0, Rights: wire.TopicManage}}}}}
	s.must(wire.OpCreateUser, newUser("ann", rights))
	s.must(wire.OpCreateToken, newToken("ci", 0, 1))
	s.must(wire.OpCreateToken, newToken("soon", 1000, 2))
	s.must(wire.OpDeletePartitions, wire.PartitionsRequest{Stream: name("a"), Topic: name("t"), Count: 1})
	s.must(wire.OpCreatePartitions, wire.PartitionsRequest{Stream: name("a"), Topic: name("t"), Count: 1})
	s.must(wire.OpUpdateTopic, wire.UpdateTopicRequest{Stream: name("a"), Topic: name("t"), Name: []byte("t"),
		Options: u64Option("message_expiry", 0)})
	s.must(wire.OpPurgeTopic, wire.TopicTarget{Stream: name("a"), Topic: name("t")})
	s.join(1)
	s.join(2, 2)
	s.commit(wire.PrepareHeader{Operation: wire.OpRegisterNode}, aNode(5, 1).Append(nil))
	return s.log
}

func validBodies(t testing.TB) map[wire.Operation][]byte {
	topic := wire.TopicTarget{Stream: name("a"), Topic: name("t")}
	user := wire.UserTarget{User: name("ann")}
	rights := wire.Permissions{Global: 1, Streams: []wire.StreamPermissions{{Stream: 1, Topics: []wire.TopicPermissions{{Topic: 2}}}}}.Append(nil)
	bodies := map[wire.Operation][]byte{}
	for op, b := range map[wire.Operation]body{
		wire.OpCreateStream: createStream("b"), wire.OpUpdateStream: wire.UpdateStreamRequest{Stream: name("a"), Name: []byte("c")},
		wire.OpDeleteStream: wire.StreamTarget{Stream: name("a")}, wire.OpPurgeStream: wire.StreamTarget{Stream: name("a")},
		wire.OpCreateTopic: topicWith("a", "u", 2, u64Option("segment_size", 1<<20)), wire.OpDeleteTopic: topic, wire.OpPurgeTopic: topic,
		wire.OpUpdateTopic:      wire.UpdateTopicRequest{Stream: name("a"), Topic: name("t"), Name: []byte("u"), Options: u64Option("message_expiry", 5)},
		wire.OpCreatePartitions: wire.PartitionsRequest{Stream: name("a"), Topic: name("t"), Count: 1},
		wire.OpDeletePartitions: wire.PartitionsRequest{Stream: name("a"), Topic: name("t"), Count: 1},
		wire.OpDeleteSegments:   wire.DeleteSegmentsRequest{Stream: name("a"), Topic: name("t"), Partition: 1, Count: 1},
		wire.OpCreateGroup:      wire.CreateGroupRequest{Stream: name("a"), Topic: name("t"), Name: []byte("h")},
		wire.OpDeleteGroup:      theGroup, wire.OpJoinGroup: theGroup, wire.OpLeaveGroup: theGroup,
		wire.OpCreateUser:        wire.CreateUserRequest{Username: []byte("bob"), Password: []byte("pass"), Status: 1, Permissions: rights},
		wire.OpUpdateUser:        wire.UpdateUserRequest{User: name("ann"), Username: []byte("amy"), HasStatus: true, Status: 2},
		wire.OpDeleteUser:        user,
		wire.OpChangePassword:    wire.ChangePasswordRequest{User: name("ann"), Current: []byte("old"), New: []byte("new")},
		wire.OpUpdatePermissions: wire.UpdatePermissionsRequest{User: name("ann"), Permissions: rights},
		wire.OpCreateToken:       wire.CreateTokenRequest{Name: []byte("t2"), Expiry: 5},
		wire.OpDeleteToken:       wire.DeleteTokenRequest{Name: []byte("ci")},
	} {
		bodies[op] = b.Append(nil)
	}
	for _, op := range clientOps {
		if bodies[op] == nil {
			t.Fatalf("no body for %v", op)
		}
	}
	return bodies
}

// The reference orders bodies of some operations without decoding them and dies when it applies one. Here every
// body is decoded before the log, at every cut, and apply survives what admission would refuse.
func TestUndecodableBodies(t *testing.T) {
	l := populated(t)
	for op, whole := range validBodies(t) {
		if code := l.v.Check(op, whole, RootID); code != 0 {
			t.Errorf("%v: the whole body is refused with %v", op, code)
		}
		refused := 0
		for cut := range len(whole) {
			code := l.v.Check(op, whole[:cut], RootID)
			if code != 0 && code != wire.CodeInvalidCommand {
				t.Errorf("%v cut at %d: %v", op, cut, code)
			}
			if code != 0 {
				refused++
			}
		}
		if refused < len(whole)-1 { // one cut may fall in front of an optional tail
			if op != wire.OpCreateTopic && op != wire.OpUpdateTopic && op != wire.OpCreateUser {
				t.Errorf("%v: %d of %d cuts are refused", op, refused, len(whole))
			}
		}
		if code := l.v.Check(op, nil, RootID); code != wire.CodeInvalidCommand {
			t.Errorf("%v with an empty body: %v", op, code)
		}
	}
	if code := l.v.Check(wire.OpSendMessages, nil, RootID); code != wire.CodeInvalidCommand {
		t.Errorf("an operation of the other plane: %v", code)
	}
	for _, op := range []wire.Operation{64, 65, 66, 67} {
		if _, _, code := l.v.Admit(nil, &Request{Operation: op, Body: []byte{1, 2, 3}}); code != wire.CodeInvalidCommand {
			t.Errorf("internal operation %v: %v", op, code)
		}
	}
}

// Apply with a body that does not decode commits a rejection and changes nothing but the client table.
func TestApplySurvivesUndecodableBodies(t *testing.T) {
	for _, op := range loggedOps {
		if op == wire.OpRegister || op == wire.OpLogout {
			continue
		}
		l := populated(t)
		before := stateOf(t, l.v)
		if r := l.commit(wire.PrepareHeader{Operation: op, Client: client(1000), Request: 99}, []byte{9, 9}); r.Code != wire.CodeInvalidCommand {
			t.Errorf("%v: %v", op, r.Code)
		}
		if stateOf(t, l.v) != before {
			t.Errorf("%v changed the state", op)
		}
		if l.v.Client(client(1000)).Watermark != 99 {
			t.Errorf("%v: the number is not used up", op)
		}
	}
}

// stateOf is everything but clients, op and time.
func stateOf(t testing.TB, v *View) string {
	c := *v
	c.Op, c.Time = 0, 0
	c.clients, c.slots, c.recency = empty(Limits{}).clients, empty(Limits{}).slots, empty(Limits{}).recency
	return string(c.EncodeSnapshot(nil))
}

func FuzzApply(f *testing.F) {
	seeds := populated(f)
	for i := range seeds.prepares {
		p := &seeds.prepares[i]
		f.Add(uint8(p.header.Operation), p.body, uint32(0), uint64(1000))
	}
	base := seeds.v
	f.Fuzz(func(t *testing.T, op uint8, b []byte, user uint32, id uint64) {
		h := wire.PrepareHeader{Operation: wire.Operation(op), Op: base.Op + 1, Timestamp: base.Time + 1, Client: client(id), UserID: user, Request: 500}
		next, reply := base.Apply(&h, b)
		if again, _ := base.Apply(&h, b); !bytes.Equal(next.EncodeSnapshot(nil), again.EncodeSnapshot(nil)) {
			t.Fatal("two runs differ")
		}
		if reply.Code != 0 && stateOf(t, next) != stateOf(t, base) {
			t.Fatalf("a rejection (%v) changed the state", reply.Code)
		}
		snapshot(t, next)
	})
}

// What admission lets through decodes at apply.
func FuzzAdmit(f *testing.F) {
	l := populated(f)
	for op, b := range validBodies(f) {
		f.Add(uint8(op), b, uint32(0))
	}
	f.Add(uint8(wire.OpCreateToken), LogCreateToken(nil, wire.CreateTokenRequest{Name: []byte("x")}.Append(nil), 0, string(make([]byte, 64))), uint32(0))
	f.Fuzz(func(t *testing.T, op uint8, b []byte, user uint32) {
		v := l.v
		v.Check(wire.Operation(op), b, user)
		r := &Request{Operation: wire.Operation(op), Body: b, UserID: user, Client: client(1)}
		logged, out, code := v.Admit([]byte("front"), r)
		if !bytes.HasPrefix(out, []byte("front")) || code != 0 && len(out) != 5 {
			t.Fatalf("dst: %q", out)
		}
		if code != 0 {
			return
		}
		if len(out) > len(b)+5+1100+wire.MaxPartitions*12 {
			t.Fatalf("%d bytes became %d", len(b), len(out))
		}
		h := wire.PrepareHeader{Operation: logged, Op: v.Op + 1, Timestamp: v.Time + 1, Client: client(1), UserID: user, Request: 500}
		next, reply := v.Apply(&h, out[5:])
		if reply.Code == wire.CodeInvalidCommand || reply.Code == wire.CodeInvalidOptionValue {
			t.Fatalf("%v was admitted and is refused at apply: %v", logged, reply.Code)
		}
		snapshot(t, next)
	})
}

func FuzzDecodeSnapshot(f *testing.F) {
	l := populated(f)
	f.Add(l.v.EncodeSnapshot(nil))
	f.Add(New(RootUser{"iggy", rootHash}, Limits{}).EncodeSnapshot(nil))
	l.v = New(RootUser{"iggy", rootHash}, Limits{Clients: 2})
	for i := range uint64(4) {
		l.login(client(i+1), RootID)
	}
	f.Add(l.v.EncodeSnapshot(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := DecodeSnapshot(b, Limits{})
		if err != nil {
			if !errors.Is(err, ErrSnapshot) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		canonical := snapshot(t, v)
		again, err := DecodeSnapshot(canonical, Limits{})
		if err != nil || !bytes.Equal(canonical, again.EncodeSnapshot(nil)) {
			t.Fatalf("not stable: %v", err)
		}
		// Whatever was accepted can be worked with.
		s := &session{log: &log{t: t, v: v, now: 1}, id: client(1)}
		if s.v.UserByID(RootID) == nil || s.v.Op > 1<<62 {
			return
		}
		for _, op := range clientOps {
			s.raw(op, theGroup.Append(nil))
		}
		s.logout(client(2))
	})
}

func TestSnapshotRefusesDamage(t *testing.T) {
	whole := populated(t).v.EncodeSnapshot(nil)
	for cut := range whole {
		if _, err := DecodeSnapshot(whole[:cut], Limits{}); !errors.Is(err, ErrSnapshot) {
			t.Fatalf("cut at %d: %v", cut, err)
		}
	}
	if _, err := DecodeSnapshot(append(bytes.Clone(whole), 0xc0), Limits{}); !errors.Is(err, ErrSnapshot) {
		t.Fatalf("a byte too many: %v", err)
	}
	values := []byte{0, 0xc0, 0x9f, 0xdd, 0xff}
	for i := range whole { // must not panic, whatever it says
		changed := bytes.Clone(whole)
		changed[i] = values[i%len(values)]
		if v, err := DecodeSnapshot(changed, Limits{}); err == nil {
			snapshot(t, v)
		}
	}
}
