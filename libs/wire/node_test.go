package wire

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
)

func TestNode(t *testing.T) {
	for _, n := range []Node{
		{UUID: U128{Lo: 2, Hi: 1}, ID: 7, Role: RolePartition, Epoch: 0x0807060504030201, Zone: []byte("a"), Replica: []byte("r:9090"), Service: []byte("s:9091")},
		{UUID: U128{Lo: 1}, ID: NoNode, Role: RoleMetadata | RolePartition, Change: NodeLeaves, Zone: []byte{}, Replica: []byte{}, Service: []byte{}},
	} {
		b := n.Append(nil)
		got, err := DecodeNode(b)
		if err != nil || !reflect.DeepEqual(got, n) {
			t.Errorf("%+v %v, want %+v", got, err, n)
		}
		for cut := range b {
			if _, err := DecodeNode(b[:cut]); err == nil {
				t.Errorf("%d of %d bytes decode", cut, len(b))
			}
		}
		if _, err := DecodeNode(append(bytes.Clone(b), 0)); err == nil {
			t.Error("a longer body decodes")
		}
	}
	want := "\x01\x00\x02\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x07\x02\x01\x02\x03\x04\x05\x06\x07\x08\x01a\x06r:9090\x06s:9091"
	n := Node{UUID: U128{Lo: 2, Hi: 1}, ID: 7, Role: RolePartition, Epoch: 0x0807060504030201, Zone: []byte("a"), Replica: []byte("r:9090"), Service: []byte("s:9091")}
	if got := n.Append(nil); string(got) != want {
		t.Errorf("%q", got)
	}
	for name, spoil := range map[string]func(*Node){
		"no uuid":      func(n *Node) { n.UUID = U128{} },
		"no role":      func(n *Node) { n.Role = 0 },
		"unknown role": func(n *Node) { n.Role = 4 },
	} {
		bad := n
		spoil(&bad)
		if _, err := DecodeNode(bad.Append(nil)); !errors.Is(err, CodeInvalidCommand) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
