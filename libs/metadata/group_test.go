package metadata

import (
	"fmt"
	"slices"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
	"pgregory.net/rapid"
)

// groupOf makes stream a, topic t with n partitions and group g.
func groupOf(t testing.TB, n uint32) *session {
	s := newLog(t).session(1000, RootID)
	s.must(wire.OpCreateStream, createStream("a"))
	s.must(wire.OpCreateTopic, createTopic("a", "t", n))
	s.must(wire.OpCreateGroup, wire.CreateGroupRequest{Stream: name("a"), Topic: name("t"), Name: []byte("g")})
	return s
}

var theGroup = wire.GroupTarget{Stream: name("a"), Topic: name("t"), Group: name("g")}

func (l *log) group() *Group {
	g, code := l.v.Group(theGroup.Stream, theGroup.Topic, theGroup.Group)
	if code != 0 {
		l.t.Fatalf("group: %v", code)
	}
	return g
}

func (l *log) join(n uint64, inFlight ...uint32) *session {
	s := &session{log: l, id: client(n)}
	if l.v.Client(s.id) == nil {
		s = l.session(n, RootID)
	}
	if got := s.admit(&Request{Operation: wire.OpJoinGroup, Body: theGroup.Append(nil), InFlight: inFlight}); got.code() != 0 {
		l.t.Fatalf("join: %v", got.code())
	}
	return s
}

func shape(g *Group) string {
	lists := []string{}
	for _, m := range g.Members {
		lists = append(lists, fmt.Sprint(m.Partitions))
	}
	return fmt.Sprint(lists)
}

func Test108_JoiningOneByOne(t *testing.T) {
	for _, c := range []struct {
		partitions uint32
		shapes     []string // after each join
	}{
		{3, []string{"[[0 1 2]]", "[[0 1] [2]]", "[[0] [2] [1]]", "[[0] [2] [1] []]"}},
		{0, []string{"[[]]", "[[] []]"}},
		{1, []string{"[[0]]", "[[0] []]", "[[0] [] []]"}},
		{10, []string{"[[0 1 2 3 4 5 6 7 8 9]]", "[[0 1 2 3 4] [9 8 7 6 5]]", "[[0 1 2 3] [9 8 7] [4 5 6]]", "[[0 1 2] [9 8 7] [4 5] [3 6]]"}},
	} {
		s := groupOf(t, c.partitions)
		for i, want := range c.shapes {
			s.join(uint64(i))
			if g := s.group(); shape(g) != want || g.Generation != uint64(i+1) {
				t.Errorf("%d partitions, %d members: %s generation %d, want %s", c.partitions, i+1, shape(g), g.Generation, want)
			}
			snapshot(t, s.v)
		}
	}
	for _, c := range []struct{ partitions, members uint32 }{{12, 4}, {16, 16}, {24, 8}, {7, 5}} {
		s := groupOf(t, c.partitions)
		for i := range c.members {
			s.join(uint64(i))
		}
		for _, m := range s.group().Members {
			if n := uint32(len(m.Partitions)); n != c.partitions/c.members && n != c.partitions/c.members+1 {
				t.Errorf("%d over %d: a member has %d", c.partitions, c.members, n)
			}
		}
	}
}

func Test103_104_105_107_GroupCommands(t *testing.T) {
	s := groupOf(t, 3)
	create := func(n string) body {
		return wire.CreateGroupRequest{Stream: name("a"), Topic: name("t"), Name: []byte(n)}
	}
	target := func(a, b, c string) body { return wire.GroupTarget{Stream: name(a), Topic: name(b), Group: name(c)} }
	s.must(wire.OpCreateGroup, create("g1"))
	s.want(result(5004), wire.OpCreateGroup, create("g1"))
	s.must(wire.OpDeleteGroup, target("a", "t", "g1"))
	s.want(result(5000), wire.OpDeleteGroup, target("a", "t", "g1"))
	d, err := wire.DecodeGroupDetails(s.must(wire.OpCreateGroup, create("g1")))
	if err != nil || d.ID != 2 || d.PartitionsCount != 3 || d.MembersCount != 0 {
		t.Fatalf("ids are never used again: %+v %v", d, err)
	}
	for _, op := range []wire.Operation{wire.OpJoinGroup, wire.OpLeaveGroup, wire.OpDeleteGroup} {
		s.want(result(1009), op, target("x", "t", "g"))
		s.want(result(2010), op, target("a", "x", "g"))
		s.want(result(5000), op, target("a", "t", "x"))
	}
	s.want(result(5006), wire.OpLeaveGroup, theGroup)
	s.must(wire.OpJoinGroup, theGroup)
	before := s.group()
	s.must(wire.OpJoinGroup, theGroup)
	if s.group() != before {
		t.Fatal("joining again must change nothing")
	}
	s.must(wire.OpLeaveGroup, theGroup)
	if g := s.group(); len(g.Members) != 0 || g.Generation != 2 || g.Owner(0) != nil {
		t.Fatalf("106: %+v", g)
	}
	s.must(wire.OpJoinGroup, theGroup)
	s.must(wire.OpDeleteGroup, theGroup)
	if s.v.Memberships(s.id) != nil {
		t.Fatal("a membership survives its group")
	}
}

func Test112_114_Revocation(t *testing.T) {
	s := groupOf(t, 3)
	a := s.join(1)
	b := s.join(2, 2)
	g := s.group()
	ma, mb := g.Member(a.id), g.Member(b.id)
	if shape(g) != "[[0 1 2] []]" || len(ma.Revoking) != 1 || ma.Revoking[0].Target != mb.Slot || ma.Revoking[0].CreatedAt != s.now {
		t.Fatalf("%s %+v", shape(g), ma)
	}
	if g.Pollable(a.id, 2) || !g.Owns(a.id, 2) || g.Pollable(b.id, 2) || g.Owns(b.id, 2) || ma.PollableCount() != 2 {
		t.Fatal("the source commits but does not poll, the target has nothing yet")
	}
	if got := slices.Collect(ma.PollablePartitions()); !slices.Equal(got, []uint32{0, 1}) {
		t.Fatalf("sync shows %v", got)
	}
	revoking := 0
	for _, g := range s.v.Revoking() {
		revoking += len(g.Members)
	}
	if revoking != 2 {
		t.Fatal("the group is not listed as revoking")
	}
	snapshot(t, s.v)
	complete := func() {
		g := s.group()
		body := LogCompleteRevocation(nil, g, ma, 2)
		s.commit(wire.PrepareHeader{Operation: wire.OpCompleteRevocation, Client: wire.RevocationClient(0, 2), Request: ^uint64(0)}, body)
	}
	revision := s.v.Revision
	complete()
	if g := s.group(); shape(g) != "[[0 1] [2]]" || g.Generation != 3 || !g.Pollable(b.id, 2) || s.v.Revision != revision+1 {
		t.Fatalf("%s generation %d", shape(g), g.Generation)
	}
	complete() // a late proposal
	if g := s.group(); g.Generation != 3 || s.v.Revision != revision+1 {
		t.Fatal("a revocation completed twice")
	}
	if s.v.revoking.Len() != 0 {
		t.Fatal("nothing is pending any more")
	}
}

func Test115_116_RevocationEndsWithAMember(t *testing.T) {
	for _, leaver := range []uint64{1, 2} {
		s := groupOf(t, 3)
		s.join(1)
		s.join(2, 0, 1, 2)
		s.logout(client(leaver))
		if g := s.group(); shape(g) != "[[0 1 2]]" || g.revoking() || s.v.revoking.Len() != 0 || !g.Pollable(client(3-leaver), 2) {
			t.Fatalf("after %d left: %s", leaver, shape(g))
		}
	}
}

func Test118_PartitionsChange(t *testing.T) {
	s := groupOf(t, 4)
	s.join(1)
	s.join(2, 2, 3)
	change := func(n uint32) body { return wire.PartitionsRequest{Stream: name("a"), Topic: name("t"), Count: n} }
	s.must(wire.OpCreatePartitions, change(1))
	if g := s.group(); shape(g) != "[[0 2 4] [1 3]]" || g.Generation != 3 || g.revoking() {
		t.Fatalf("%s generation %d", shape(g), g.Generation)
	}
	s.must(wire.OpDeletePartitions, change(4))
	if g := s.group(); shape(g) != "[[0] []]" || g.Owner(1) != nil {
		t.Fatal(shape(g))
	}
	s.must(wire.OpDeletePartitions, change(1))
	s.must(wire.OpCreatePartitions, change(2))
	if g := s.group(); shape(g) != "[[0] [1]]" || g.Generation != 6 {
		t.Fatalf("%s generation %d", shape(g), g.Generation)
	}
}

func TestSurplusNamesWhatWouldMove(t *testing.T) {
	s := groupOf(t, 10)
	s.join(1)
	if got := s.group().Surplus(client(2)); !slices.Equal(got, []uint32{5, 6, 7, 8, 9}) {
		t.Fatalf("%v", got)
	}
	if got := s.group().Surplus(client(1)); got != nil {
		t.Fatalf("a member moves nothing: %v", got)
	}
}

func Test119_SlotsAreUsedAgain(t *testing.T) {
	s := groupOf(t, 4)
	for i := range uint64(3) {
		s.join(i)
	}
	s.logout(client(1))
	s.join(7)
	g := s.group()
	if m := g.Member(client(7)); m.Slot != 1 || len(g.Members) != 3 {
		t.Fatalf("%+v", m)
	}
}

// Whatever happens to a group, every partition has exactly one owner or, without members, none, and
// the generation only grows, with every change.
func TestGroupModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := &rapidT{rt}
		s := groupOf(t, r.Uint32(0, 12))
		for range r.Int(1, 40) {
			before := s.group()
			n := uint64(r.Int(0, 8))
			switch r.Int(0, 7) {
			case 0, 1, 2:
				var inFlight []uint32
				for p := range before.partitions {
					if r.Int(0, 1) == 1 {
						inFlight = append(inFlight, p)
					}
				}
				s.join(n, inFlight...)
			case 3:
				s.logout(client(n))
			case 4:
				if before.Member(client(n)) != nil {
					member := &session{log: s.log, id: client(n), request: s.v.Client(client(n)).Watermark}
					member.must(wire.OpLeaveGroup, theGroup)
				}
			case 5:
				s.do(wire.OpCreatePartitions, wire.PartitionsRequest{Stream: name("a"), Topic: name("t"), Count: r.Uint32(1, 4)})
			case 6:
				s.do(wire.OpDeletePartitions, wire.PartitionsRequest{Stream: name("a"), Topic: name("t"), Count: r.Uint32(1, 4)})
			case 7:
				s.completeSome(r, before)
			}
			checkGroup(r, s.log, before)
		}
		snapshot(t, s.v)
	})
}

func (l *log) completeSome(r *rapidT, g *Group) {
	for _, m := range g.Members {
		for _, p := range m.Revoking {
			if r.Int(0, 1) == 1 {
				l.commit(wire.PrepareHeader{Operation: wire.OpCompleteRevocation, Client: wire.RevocationClient(0, p.Partition), Request: ^uint64(0)},
					LogCompleteRevocation(nil, g, m, p.Partition))
			}
		}
	}
}

func checkGroup(r *rapidT, l *log, before *Group) {
	g := l.group()
	if g.Generation < before.Generation || g.Generation == before.Generation && g != before && shape(g) != shape(before) {
		r.Fatalf("generation %d after %d", g.Generation, before.Generation)
	}
	topic, _ := l.v.Topic(name("a"), name("t"))
	if g.partitions != topic.Partitions() {
		r.Fatalf("the group knows %d partitions of %d", g.partitions, topic.Partitions())
	}
	owner := map[uint32]*Member{}
	for i, m := range g.Members {
		if i > 0 && g.Members[i-1].Slot >= m.Slot {
			r.Fatalf("members out of order")
		}
		for _, p := range m.Partitions {
			if owner[p] != nil {
				r.Fatalf("partition %d has two owners", p)
			}
			owner[p] = m
			if g.Owner(p) != m || !g.Owns(m.Client, p) || g.Pollable(m.Client, p) == m.revokes(p) {
				r.Fatalf("partition %d: the index disagrees", p)
			}
		}
		for _, rev := range m.Revoking {
			if owner[rev.Partition] != m || slices.IndexFunc(g.Members, func(m *Member) bool { return m.Slot == rev.Target }) < 0 {
				r.Fatalf("revocation %+v of member %d", rev, m.Slot)
			}
		}
		if !slices.Contains(l.v.Memberships(m.Client), g.GroupKey) {
			r.Fatalf("the client's memberships lack the group")
		}
	}
	if want := int(g.partitions); len(g.Members) > 0 && len(owner) != want {
		r.Fatalf("%d of %d partitions have an owner", len(owner), want)
	}
	if _, listed := l.v.revoking.Get(g.GroupKey); listed != g.revoking() {
		r.Fatalf("listed as revoking: %v", listed)
	}
}

// rapidT draws without naming every draw.
type rapidT struct{ *rapid.T }

func (r *rapidT) Int(low, high int) int          { return rapid.IntRange(low, high).Draw(r.T, "n") }
func (r *rapidT) Uint32(low, high uint32) uint32 { return rapid.Uint32Range(low, high).Draw(r.T, "n") }

// A member at its fair share does not use up the extra partition of a later one; a member that a pending
// revocation will serve is not idle.
func TestCooperativeShares(t *testing.T) {
	s := groupOf(t, 5)
	for i := range uint64(3) {
		s.join(i)
	}
	s.logout(client(0))
	s.join(3)
	if got := shape(s.group()); got != "[[4] [0 2] [1 3]]" {
		t.Fatal(got)
	}
	s.join(4)
	if got := shape(s.group()); got != "[[4] [0 2] [1] [3]]" {
		t.Fatal(got)
	}
	s = groupOf(t, 3)
	s.join(1)
	s.join(2, 2)
	s.join(3)
	if g := s.group(); shape(g) != "[[0 2] [] [1]]" || g.Members[0].Revoking[0].Target != 1 {
		t.Fatal(shape(g))
	}
}
