package wire

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A blob in any order, with any non-zero byte for true and with repeated entries, reads as its
// canonical form does: ascending, the last of repeated entries.
func TestPermissionsInAnyOrder(t *testing.T) {
	type stream struct {
		rights StreamRights
		topics map[uint32]TopicRights
	}
	rapid.Check(t, func(t *rapid.T) {
		streams := map[uint32]stream{}
		global := GlobalRights(rapid.Uint16Range(0, uint16(GlobalAll)).Draw(t, "global"))
		truth := rapid.ByteRange(1, 255)
		flags := func(b []byte, set uint16, n int) []byte {
			for i := range n {
				if set>>i&1 == 0 {
					b = append(b, 0)
				} else {
					b = append(b, truth.Draw(t, "true"))
				}
			}
			return b
		}
		blob := flags(nil, uint16(global), 10)
		for range rapid.IntRange(0, 5).Draw(t, "streams") {
			id := rapid.Uint32Range(0, 3).Draw(t, "stream")
			s := stream{StreamRights(rapid.ByteRange(0, 63).Draw(t, "rights")), map[uint32]TopicRights{}}
			blob = flags(appendU32(append(blob, truth.Draw(t, "more")), id), uint16(s.rights), 6)
			for range rapid.IntRange(0, 4).Draw(t, "topics") {
				topic := rapid.Uint32Range(0, 3).Draw(t, "topic")
				s.topics[topic] = TopicRights(rapid.ByteRange(0, 15).Draw(t, "rights"))
				blob = flags(appendU32(append(blob, truth.Draw(t, "more")), topic), uint16(s.topics[topic]), 4)
			}
			blob = append(blob, 0)
			streams[id] = s
		}
		blob = append(blob, 0)

		want := Permissions{Global: global}
		for _, id := range slices.Sorted(maps.Keys(streams)) {
			s := StreamPermissions{Stream: id, Rights: streams[id].rights}
			for _, topic := range slices.Sorted(maps.Keys(streams[id].topics)) {
				s.Topics = append(s.Topics, TopicPermissions{topic, streams[id].topics[topic]})
			}
			want.Streams = append(want.Streams, s)
		}
		got, err := DecodePermissions(blob)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%x reads as %+v, %v; want %+v", blob, got, err, want)
		}
		again, err := DecodePermissions(want.Append(nil))
		if err != nil || !reflect.DeepEqual(again, want) {
			t.Fatalf("canonical form reads as %+v, %v", again, err)
		}
		request := UpdatePermissionsRequest{User: NumericID(1), Permissions: blob}
		if q, err := DecodeUpdatePermissions(request.Append(nil)); err != nil || !bytes.Equal(q.Permissions, blob) {
			t.Fatalf("request carries %x, %v", q.Permissions, err)
		}
	})
}

// A blob that a request carries must fill its length and walk to its end.
func TestRequestsRefuseBadPermissions(t *testing.T) {
	blob := nestedPermissions.Append(nil)
	for n := range blob {
		q := UpdatePermissionsRequest{User: NumericID(1), Permissions: blob[:n]}
		if got, err := DecodeUpdatePermissions(q.Append(nil)); err != CodeInvalidCommand {
			t.Errorf("blob of %d bytes: %+v, %v", n, got, err)
		}
		create := CreateUserRequest{Username: []byte("bob"), Status: UserActive, Permissions: blob[:n]}
		if got, err := DecodeCreateUser(create.Append(nil)); err != CodeInvalidCommand {
			t.Errorf("blob of %d bytes: %+v, %v", n, got, err)
		}
	}
	q := UpdatePermissionsRequest{User: NumericID(1), Permissions: append(blob, 0)}
	if _, err := DecodeUpdatePermissions(q.Append(nil)); err != CodeInvalidCommand {
		t.Errorf("blob with a byte behind it: %v", err)
	}
}
