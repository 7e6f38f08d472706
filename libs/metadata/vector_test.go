package metadata

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
)

// vector returns the bytes of a golden vector of replica-wire.md §16.
func vector(t testing.TB, wanted string) []byte {
	t.Helper()
	data, err := os.ReadFile("../wire/testdata/replica-wire.json")
	if err != nil {
		t.Fatal(err)
	}
	type entry struct{ Name, Hex string }
	var list []entry
	if json.Unmarshal(data, &list) != nil {
		var file struct{ Vectors []entry }
		if err := json.Unmarshal(data, &file); err != nil {
			t.Fatal(err)
		}
		list = file.Vectors
	}
	for _, e := range list {
		if e.Name == wanted {
			b, err := hex.DecodeString(e.Hex)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
	}
	t.Fatalf("no vector %s", wanted)
	return nil
}

func TestSnapshotVectors(t *testing.T) {
	v, err := DecodeSnapshot(vector(t, "snapshot/minimal-payload"), Limits{})
	if err != nil || v.Op != 42 || v.users.Len() != 0 {
		t.Fatalf("minimal: %v %+v", err, v)
	}
	populated := vector(t, "snapshot/populated-payload")
	v, err = DecodeSnapshot(populated, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	topic, code := v.Topic(name("orders"), name("t1"))
	if code != 0 || topic.Settings.MaxTopicSize != 1<<30 || topic.Partitions() != 1 || v.Revision != 1 || v.Op != 4 {
		t.Fatalf("%v %+v", code, topic)
	}
	member := wire.U128{Lo: 0xcafef00d, Hi: 0x0001_0000_0000_0000}
	g := topic.Group(name("g1"))
	if g == nil || !g.Pollable(member, 0) || v.Client(member).Epoch != 1 || len(v.Memberships(member)) != 1 {
		t.Fatalf("%+v", g)
	}
	if tok := v.TokenByHash("0ec389822c20ffc8c471382d4520b1e17783a3bfaaf16c75b606d1ef3fde2f15"); tok == nil || tok.Name != "ci" {
		t.Fatal("the token is not found")
	}
	// What this package writes differs where the reference has node-local statistics, and in listing the
	// derived options that this hand-made vector leaves out. Everything else is byte for byte the same.
	got := v.EncodeSnapshot(nil)
	at, want := 0, populated
	for _, gap := range []struct{ ours, theirs []byte }{
		{[]byte{0x93, 0, 0, 0, 0x91, 0x92, 0}, []byte{0x93, 0, 0, 0, 0x91, 0x92, 0}},
		{[]byte{0x93, 0, 0, 0, 0x91, 0x96}, []byte{0x93, 0xcd, 0x01, 0x2c, 2, 1, 0x91, 0x96}},
	} {
		i, j := bytes.Index(got, gap.ours), bytes.Index(want, gap.theirs)
		if i < 0 || j < 0 || !bytes.Equal(got[:i], want[:j]) {
			t.Fatalf("part %d:\n%x\n%x", at, got, want)
		}
		got, want = got[i+len(gap.ours):], want[j+len(gap.theirs):]
		at++
	}
	options := []byte{0x92, 0xa6, 's', 't', 'r', 'i', 'n', 'g'} // first option key
	i, j := bytes.Index(got, options), bytes.Index(want, options)
	if !bytes.Equal(got[:i-1], want[:j-1]) || got[i-1] != 0x88 || want[j-1] != 0x81 {
		t.Fatalf("partition and group:\n%x\n%x", got, want)
	}
	end := []byte{0x80, 0x01, 0x91, 0x91, 0x92, 0x00, 0x96} // stream options, revision, client table
	if i, j = bytes.Index(got, end), bytes.Index(want, end); i < 0 || !bytes.Equal(got[i:], want[j:]) {
		t.Fatalf("client table:\n%x\n%x", got, want)
	}
}

func TestBodyVectors(t *testing.T) {
	l := newLog(t)
	s := l.session(1, RootID)
	s.must(wire.OpCreateStream, createStream("orders"))
	// The logged form of CreateTopic comes out of admission byte for byte.
	request := wire.CreateTopicRequest{Stream: number(0), PartitionsCount: 2, Name: []byte("t1"), Options: u64Option("max_topic_size", 1<<30)}
	op, body, code := l.v.Admit(nil, &Request{Operation: wire.OpCreateTopic, Body: request.Append(nil)})
	if want := vector(t, "body/create-topic-with-assignments"); code != 0 || op != 64 || !bytes.Equal(body, want) {
		t.Fatalf("%v %v\n%x\n%x", op, code, body, want)
	}
	s.request++
	s.ordered(op, body)
	_, body, _ = l.v.Admit(nil, &Request{Operation: wire.OpCreatePartitions,
		Body: wire.PartitionsRequest{Stream: number(0), Topic: number(0), Count: 1}.Append(nil)})
	if want := vector(t, "body/create-partitions-with-assignments"); !bytes.Equal(body, want) {
		t.Fatalf("65:\n%x\n%x", body, want)
	}
	_, body, _ = l.v.Admit(nil, &Request{Operation: wire.OpDeleteSegments, TrimTo: 999,
		Body: wire.DeleteSegmentsRequest{Stream: number(0), Topic: number(0), Partition: 1, Count: 3}.Append(nil)})
	if want := vector(t, "body/truncate-partition"); !bytes.Equal(body, want) {
		t.Fatalf("68:\n%x\n%x", body, want)
	}
	member := wire.U128{Lo: 0xcafef00d, Hi: 0x0001_0000_0000_0000}
	group := wire.GroupTarget{Stream: number(0), Topic: number(0), Group: name("g1")}.Append(nil)
	_, body, _ = l.v.Admit(nil, &Request{Operation: wire.OpJoinGroup, Body: group, Client: member, InFlight: []uint32{0, 2}})
	if want := vector(t, "body/join-consumer-group"); !bytes.Equal(body, want) {
		t.Fatalf("148:\n%x\n%x", body, want)
	}
	_, body, _ = l.v.Admit(nil, &Request{Operation: wire.OpLeaveGroup, Body: group, Client: member})
	if want := vector(t, "body/leave-consumer-group"); !bytes.Equal(body, want) {
		t.Fatalf("149:\n%x\n%x", body, want)
	}
	g := &Group{GroupKey: GroupKey{0, 0, 4}}
	if body = LogCompleteRevocation(nil, g, &Member{Client: member}, 1); !bytes.Equal(body, vector(t, "body/complete-consumer-group-revocation")) {
		t.Fatalf("67: %x", body)
	}
	tok := &Token{UserID: 5, Name: "ci"}
	if body = LogExpireToken(nil, tok); !bytes.Equal(body, vector(t, "body/delete-personal-access-token-cleaner")) {
		t.Fatalf("147: %x", body)
	}
	hash := "0ec389822c20ffc8c471382d4520b1e17783a3bfaaf16c75b606d1ef3fde2f15"
	body = LogCreateToken(nil, wire.CreateTokenRequest{Name: []byte("ci"), Expiry: ^uint64(0)}.Append(nil), 5, hash)
	if !bytes.Equal(body, vector(t, "body/create-personal-access-token")) {
		t.Fatalf("146: %x", body)
	}
	body = LogChangePassword(nil, wire.ChangePasswordRequest{User: number(5), Current: []byte("a"), New: []byte("b")}.Append(nil), "")
	if !bytes.Equal(body, vector(t, "body/change-password-denied")) {
		t.Fatalf("144: %x", body)
	}
}

func TestCachedReplyVector(t *testing.T) {
	frame := vector(t, "frame/prepare-register-op1")
	var h wire.PrepareHeader
	if err := h.Decode(frame); err != nil {
		t.Fatal(err)
	}
	v, _ := New(RootUser{"iggy", rootHash}, Limits{}).Apply(&h, nil)
	if got := v.Client(h.Client).Replies[0].Append(nil); !bytes.Equal(got, vector(t, "frame/reply-register-cached")) {
		t.Fatalf("%x", got)
	}
}
