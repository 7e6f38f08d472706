package wire_test

import (
	"bytes"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/whippet-mq/whippet/libs/wire"
)

// checkBody decodes b, compares and encodes back.
func checkBody[T interface{ Append([]byte) []byte }](t *testing.T, b []byte, decode func([]byte) (T, error), want T) {
	t.Helper()
	got, err := decode(b)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("decoded %+v, %v\nwant    %+v", got, err, want)
	}
	if again := want.Append(nil); !bytes.Equal(again, b) {
		t.Errorf("encoded %x\nwant    %x", again, b)
	}
	for n := range b {
		if _, err := decode(b[:n:n]); err == nil && n > 0 && !tailOptional(any(want), n, b) {
			t.Errorf("%d of %d bytes decoded", n, len(b))
		}
	}
}

// tailOptional reports whether a cut at n takes only parts away that may be absent.
func tailOptional(want any, n int, b []byte) bool {
	switch want := want.(type) {
	case wire.LoggedCreateTopic:
		bare := want
		bare.Tag, bare.Assignments = 0, withoutMembers(want.Assignments)
		base := len(bare.Append(nil))
		return n == base || n == base+2
	case wire.LoggedCreatePartitions:
		bare := want
		bare.Tag, bare.Assignments = 0, withoutMembers(want.Assignments)
		base := len(bare.Append(nil))
		return n == base || n == base+2
	case wire.LoggedCreateUser:
		return n >= len(b)-len(want.Options)
	}
	return false
}

func withoutMembers(list []wire.Assignment) []wire.Assignment {
	bare := append([]wire.Assignment(nil), list...)
	for i := range bare {
		bare[i].Members = nil
	}
	return bare
}

func checkLogged(t *testing.T, name string, b []byte) {
	t.Helper()
	zero, four, one := wire.NumericID(0), wire.NumericID(4), wire.NumericID(1)
	group := wire.NamedID("g1")
	switch name {
	case "create-topic-with-assignments":
		want, err := wire.DecodeLoggedCreateTopic(b)
		if err != nil {
			t.Fatal(err)
		}
		explicit, derived := want.Explicit, want.Derived
		if len(explicit) != 0x2d-6-4-3 || len(derived) != 0xf2 {
			t.Errorf("options of %d and %d bytes", len(explicit), len(derived))
		}
		checkBody(t, b, wire.DecodeLoggedCreateTopic, wire.LoggedCreateTopic{
			Stream: zero, PartitionsCount: 2, Name: []byte("t1"), Explicit: explicit, Derived: derived,
			Assignments: []wire.Assignment{{Partition: 0, ConsensusGroup: 1}, {Partition: 1, ConsensusGroup: 2}},
		})
	case "create-partitions-with-assignments":
		checkBody(t, b, wire.DecodeLoggedCreatePartitions, wire.LoggedCreatePartitions{
			Stream: zero, Topic: zero, Count: 1, Assignments: []wire.Assignment{{ConsensusGroup: 3}},
		})
	case "complete-consumer-group-revocation":
		checkBody(t, b, wire.DecodeLoggedCompleteRevocation, wire.LoggedCompleteRevocation{
			Stream: zero, Topic: zero, Group: 4, Source: vectorClient, Partition: 1,
		})
	case "truncate-partition":
		checkBody(t, b, wire.DecodeLoggedTruncatePartition, wire.LoggedTruncatePartition{
			Stream: zero, Topic: zero, Partition: 1, UpToOffset: 999,
		})
	case "join-consumer-group":
		checkBody(t, b, wire.DecodeLoggedJoinGroup, wire.LoggedJoinGroup{
			Stream: zero, Topic: zero, Group: group, Client: vectorClient, InFlight: []uint32{0, 2},
		})
	case "leave-consumer-group":
		checkBody(t, b, wire.DecodeLoggedLeaveGroup, wire.LoggedLeaveGroup{Stream: zero, Topic: zero, Group: group, Client: vectorClient})
	case "create-personal-access-token":
		checkBody(t, b, wire.DecodeLoggedCreateToken, wire.LoggedCreateToken{
			UserID: 5, Name: []byte("ci"), Expiry: ^uint64(0), Hash: b[len(b)-wire.TokenHashSize:],
		})
	case "delete-personal-access-token-cleaner":
		checkBody(t, b, wire.DecodeLoggedDeleteToken, wire.LoggedDeleteToken{UserID: 5, Name: []byte("ci"), OnlyIfExpired: true})
	case "change-password-denied":
		checkBody(t, b, wire.DecodeLoggedChangePassword, wire.LoggedChangePassword{User: wire.NumericID(5), Hash: []byte{}})
	case "remove-consumer-group-member":
		checkBody(t, b, wire.DecodeLoggedRemoveMember, wire.LoggedRemoveMember{Client: vectorClient})
	default:
		t.Errorf("no test knows this body; idents %v %v", four, one)
	}
}

func TestLoggedCreateUser(t *testing.T) {
	b := append([]byte{3, 'b', 'o', 'b', 2, '$', 'a', 1, 1, 3, 0, 0, 0, 7, 8, 9}, "rest"...)
	checkBody(t, b, wire.DecodeLoggedCreateUser, wire.LoggedCreateUser{
		Name: []byte("bob"), Hash: []byte("$a"), Status: 1, HasPermissions: true, Permissions: []byte{7, 8, 9}, Options: []byte("rest"),
	})
}

// TestNativeTail pins the bytes behind the documented fields of a logged create.
func TestNativeTail(t *testing.T) {
	l := wire.LoggedCreatePartitions{
		Stream: wire.NumericID(1), Topic: wire.NumericID(2), Count: 2,
		Assignments: []wire.Assignment{{Partition: 0, ConsensusGroup: 5}, {Partition: 1, ConsensusGroup: 6}},
	}
	documented := l.Append(nil)
	l.Tag = 3
	tagged := l.Append(nil)
	if want := append(bytes.Clone(documented), 3, 0); !bytes.Equal(tagged, want) {
		t.Errorf("tag alone: %x, want %x", tagged, want)
	}
	checkBody(t, tagged, wire.DecodeLoggedCreatePartitions, l)
	l.Assignments[0].Members, l.Assignments[1].Members = []byte{4, 5, 6}, []byte{5, 6, 4}
	placed := l.Append(nil)
	if want := append(bytes.Clone(documented), 3, 0, 3, 4, 5, 6, 3, 5, 6, 4); !bytes.Equal(placed, want) {
		t.Errorf("members: %x, want %x", placed, want)
	}
	checkBody(t, placed, wire.DecodeLoggedCreatePartitions, l)
	for _, bad := range [][]byte{append(bytes.Clone(placed), 0), append(bytes.Clone(documented), 0, 8)} {
		if _, err := wire.DecodeLoggedCreatePartitions(bad); err == nil {
			t.Errorf("decoded %x", bad)
		}
	}
}

func TestLoggedTopicRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytesOf := func(low, high int, label string) []byte {
			return rapid.SliceOfN(rapid.Byte(), low, high).Draw(t, label)
		}
		l := wire.LoggedCreateTopic{
			Stream: wire.NumericID(rapid.Uint32().Draw(t, "stream")), PartitionsCount: rapid.Uint32().Draw(t, "count"),
			Name: []byte(rapid.StringMatching("[a-z]{1,40}").Draw(t, "name")), Explicit: bytesOf(0, 60, "explicit"), Derived: bytesOf(0, 60, "derived"),
			Tag: rapid.Uint16Max(wire.MaxTag).Draw(t, "tag"),
		}
		placed := rapid.Bool().Draw(t, "placed")
		for range rapid.IntRange(0, 6).Draw(t, "n") {
			a := wire.Assignment{Partition: rapid.Uint32().Draw(t, "p"), ConsensusGroup: rapid.Uint64().Draw(t, "g")}
			if placed {
				a.Members = bytesOf(1, 7, "members")
			}
			l.Assignments = append(l.Assignments, a)
		}
		got, err := wire.DecodeLoggedCreateTopic(l.Append(nil))
		if err != nil || !bytes.Equal(got.Append(nil), l.Append(nil)) || got.Tag != l.Tag || len(got.Assignments) != len(l.Assignments) {
			t.Fatalf("%+v, %v", got, err)
		}
	})
}

func TestRevocationClient(t *testing.T) {
	if got, want := wire.RevocationClient(4, 1), (wire.U128{Hi: ^uint64(0), Lo: 4<<32 | 1}); got != want {
		t.Errorf("%x", got)
	}
}
