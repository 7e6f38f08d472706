package metadata

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
	"pgregory.net/rapid"
)

// randomWorkload sends n requests of every kind from a few clients, small enough in names and ids that they
// often meet: taken names, missing targets, denied users, full reuse of ids.
func randomWorkload(r *rapidT, l *log, n int) {
	root := l.session(1, RootID)
	root.must(wire.OpCreateUser, newUser("user1", &wire.Permissions{Global: wire.GlobalManageTopics}))
	sessions := []*session{root, l.session(2, 1), l.session(3, RootID)}
	l.place = func(n int) [][]byte {
		members := make([][]byte, n)
		for i := range members {
			members[i] = []byte{byte(i % 3), 4}[:i%3]
		}
		return members
	}
	pick := func(prefix string, n int) wire.Identifier {
		if i := r.Int(0, n); r.Int(0, 1) == 0 {
			return number(uint32(i))
		} else {
			return name(fmt.Sprint(prefix, i))
		}
	}
	for range n {
		s := sessions[r.Int(0, len(sessions)-1)]
		if s.v.Client(s.id) == nil {
			s.login(s.id, s.user)
			s.request = 0
		}
		stream, topic, group, user := pick("s", 2), pick("t", 2), pick("g", 1), pick("user", 3)
		newName := func(prefix string, n int) []byte { return fmt.Append(nil, prefix, r.Int(0, n)) }
		group3 := wire.GroupTarget{Stream: stream, Topic: topic, Group: group}
		partitions := wire.PartitionsRequest{Stream: stream, Topic: topic, Count: r.Uint32(1, 3)}
		switch r.Int(0, 23) {
		case 0, 1:
			s.do(wire.OpCreateStream, wire.CreateStreamRequest{Name: newName("s", 2)})
		case 2:
			s.do(wire.OpUpdateStream, wire.UpdateStreamRequest{Stream: stream, Name: newName("s", 2)})
		case 3:
			s.do(wire.OpDeleteStream, wire.StreamTarget{Stream: stream})
		case 4:
			s.do(wire.OpPurgeStream, wire.StreamTarget{Stream: stream})
		case 5, 6, 7:
			s.do(wire.OpCreateTopic, wire.CreateTopicRequest{Stream: stream, PartitionsCount: r.Uint32(0, 4), Name: newName("t", 2),
				Options: u64Option("message_expiry", uint64(r.Int(0, 2)))})
		case 8:
			s.do(wire.OpUpdateTopic, wire.UpdateTopicRequest{Stream: stream, Topic: topic, Name: newName("t", 2),
				Options: u64Option("message_expiry", uint64(r.Int(0, 2)))})
		case 9:
			s.do(wire.OpDeleteTopic, wire.TopicTarget{Stream: stream, Topic: topic})
		case 10:
			s.do(wire.OpPurgeTopic, wire.TopicTarget{Stream: stream, Topic: topic})
		case 11:
			s.do(wire.OpCreatePartitions, partitions)
		case 12:
			s.do(wire.OpDeletePartitions, partitions)
		case 13:
			b := wire.DeleteSegmentsRequest{Stream: stream, Topic: topic, Partition: r.Uint32(0, 3)}.Append(nil)
			s.admit(&Request{Operation: wire.OpDeleteSegments, Body: b, TrimTo: uint64(r.Int(0, 9))})
		case 14, 15:
			s.do(wire.OpCreateGroup, wire.CreateGroupRequest{Stream: stream, Topic: topic, Name: newName("g", 1)})
		case 16:
			s.do(wire.OpDeleteGroup, group3)
		case 17, 18:
			s.admit(&Request{Operation: wire.OpJoinGroup, Body: group3.Append(nil), InFlight: []uint32{0, 2}})
		case 19:
			s.do(wire.OpLeaveGroup, group3)
		case 20:
			s.do(wire.OpCreateUser, newUser(fmt.Sprint("user", r.Int(0, 3)), &wire.Permissions{Streams: []wire.StreamPermissions{{Stream: 1, Rights: 3}}}))
		case 21:
			s.do(wire.OpDeleteUser, wire.UserTarget{User: user})
		case 22:
			s.do(wire.OpCreateToken, newToken(string(newName("ci", 2)), uint64(r.Int(0, 50)), int(l.v.Op)))
		case 23:
			if r.Int(0, 3) == 0 {
				s.logout(s.id)
			} else {
				s.do(wire.OpDeleteToken, wire.DeleteTokenRequest{Name: newName("ci", 2)})
			}
		}
	}
}

// The same log gives the same bytes: state and replies, on a replica that applied all of it and on one that
// started from a snapshot somewhere on the way.
func TestDeterminism(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := &rapidT{rt}
		l := newLog(t)
		l.v = New(RootUser{"iggy", rootHash}, Limits{Clients: r.Int(2, 3)})
		randomWorkload(r, l, r.Int(1, 150))
		want := snapshot(t, l.v)
		restart := r.Int(0, len(l.prepares)-1)

		whole := New(RootUser{"iggy", rootHash}, l.v.limits)
		restarted := whole
		for i := range l.prepares {
			p := &l.prepares[i]
			before := whole.EncodeSnapshot(nil)
			next, a := whole.Apply(&p.header, p.body)
			if i == 0 || i == restart {
				if !bytes.Equal(before, whole.EncodeSnapshot(nil)) {
					r.Fatalf("op %d changed the view it was applied to", p.header.Op)
				}
			}
			if i == restart {
				var err error
				if restarted, err = DecodeSnapshot(before, l.v.limits); err != nil {
					r.Fatalf("op %d: %v", p.header.Op, err)
				}
			}
			again, b := restarted.Apply(&p.header, p.body)
			if a.Code != b.Code || !bytes.Equal(a.Body, b.Body) {
				r.Fatalf("op %d, %v: replies differ", p.header.Op, p.header.Operation)
			}
			whole, restarted = next, again
		}
		if !bytes.Equal(want, whole.EncodeSnapshot(nil)) || !bytes.Equal(want, restarted.EncodeSnapshot(nil)) {
			r.Fatalf("the states differ")
		}
		checkView(r, whole)
	})
}

// checkView tests what must hold between the indexes of a view.
func checkView(r *rapidT, v *View) {
	expiring, tokens := 0, 0
	for id, u := range v.Users() {
		if byName := v.UserByName([]byte(u.Name)); u.ID != id || byName != u {
			r.Fatalf("user %d is not found under its name", id)
		}
		for n, tok := range u.Tokens() {
			tokens++
			if tok.ExpiresAt != 0 {
				expiring++
			}
			if tok.Name != n || tok.UserID != id || v.TokenByHash(tok.Hash) != tok {
				r.Fatalf("token %s of user %d", n, id)
			}
		}
	}
	if v.userNames.Len() != v.users.Len() || v.tokens.Len() != tokens || v.expiries.Len() != expiring {
		r.Fatalf("user indexes hold strangers")
	}
	memberships := 0
	for id, s := range v.Streams() {
		if s.ID != id || v.Stream(name(s.Name)) != s || s.topics.Len() != s.topicNames.Len() {
			r.Fatalf("stream %d", id)
		}
		for id, t := range s.Topics() {
			if t.ID != id || t.Stream != s.ID || s.Topic(name(t.Name)) != t || t.groups.Len() != t.groupNames.Len() {
				r.Fatalf("topic %d", id)
			}
			for _, p := range t.AllPartitions() {
				if found, q, ok := v.PartitionByGroupID(t.GroupID(&p)); !ok || found != t || q != p {
					r.Fatalf("partition %d of topic %d/%d", p.ID, s.ID, id)
				}
			}
			for _, g := range t.Groups() {
				memberships += len(g.Members)
			}
		}
	}
	for _, keys := range v.memberships.All() {
		memberships -= len(keys)
	}
	if memberships != 0 || v.streams.Len() != v.streamNames.Len() {
		r.Fatalf("memberships or names without their objects")
	}
	if v.slots.Len() != v.clients.Len() || v.recency.Len() != v.clients.Len() || v.clients.Len() > v.limits.Clients {
		r.Fatalf("client table of %d, %d slots", v.clients.Len(), v.slots.Len())
	}
	for id, c := range v.Clients() {
		owner, _ := v.slots.Get(c.Slot)
		latest, _ := v.recency.Get(c.recency())
		if c.ID != id || owner != id || latest != id || len(c.Replies) == 0 || len(c.Replies) > RepliesPerClient {
			r.Fatalf("client %v", id)
		}
	}
}

// Changes reports exactly the topics that differ between two views.
func TestChangesAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := &rapidT{rt}
		l := newLog(t)
		randomWorkload(r, l, 60)
		old := l.v
		randomRest := &log{t: t, v: old, now: l.now}
		randomWorkloadOn(r, randomRest)
		seen := map[TopicKey]bool{}
		randomRest.v.Changes(old, func(a, b *Topic) bool {
			var k TopicKey
			if a != nil {
				k = a.Key()
			} else {
				k = b.Key()
			}
			if old.TopicByKey(k) != a || randomRest.v.TopicByKey(k) != b || a == b || seen[k] {
				r.Fatalf("topic %v is reported wrongly", k)
			}
			seen[k] = true
			return true
		})
		for s := range uint32(4) {
			for n := range uint32(4) {
				k := TopicKey{s, n}
				if old.TopicByKey(k) != randomRest.v.TopicByKey(k) && !seen[k] {
					r.Fatalf("topic %v is missed", k)
				}
			}
		}
	})
}

// randomWorkloadOn continues with root's session only.
func randomWorkloadOn(r *rapidT, l *log) {
	s := &session{log: l, id: client(1), user: RootID}
	l.login(s.id, RootID)
	s.request = l.v.Client(s.id).Watermark
	for range r.Int(0, 10) {
		stream := number(r.Uint32(0, 2))
		switch r.Int(0, 4) {
		case 0:
			s.do(wire.OpCreateStream, wire.CreateStreamRequest{Name: fmt.Append(nil, "n", r.Int(0, 5))})
		case 1:
			s.do(wire.OpCreateTopic, wire.CreateTopicRequest{Stream: stream, PartitionsCount: 1, Name: fmt.Append(nil, "n", r.Int(0, 5))})
		case 2:
			s.do(wire.OpDeleteTopic, wire.TopicTarget{Stream: stream, Topic: number(r.Uint32(0, 2))})
		case 3:
			s.do(wire.OpDeleteStream, wire.StreamTarget{Stream: stream})
		case 4:
			s.do(wire.OpPurgeTopic, wire.TopicTarget{Stream: stream, Topic: number(r.Uint32(0, 2))})
		}
	}
}
