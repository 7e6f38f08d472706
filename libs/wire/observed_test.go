package wire_test

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
)

// observedNames maps the field names of the recordings to ours where they differ.
var observedNames = map[string]string{
	"user_id": "UserID", "nack_bitset": "Nack", "present_bitset": "Present", "unavailable_transient": "Transient", "mac": "MAC",
}

// TestObservedFrames decodes one real frame of every command and of every logged operation and
// compares each field with what the recorder's own decoder saw.
func TestObservedFrames(t *testing.T) {
	seen := map[wire.Command]bool{}
	for _, g := range readGolden(t, "observed-frames.json") {
		t.Run(strings.TrimPrefix(g.Name, "observed/"), func(t *testing.T) {
			frame := g.bytes(t)
			seen[wire.Command(frame[60])] = true
			h := reflect.ValueOf(checkFrame(t, frame)).Elem()
			for name, want := range g.Fields {
				ours := observedNames[name]
				if ours == "" {
					ours = camel(name)
				}
				field := h.FieldByName(ours)
				if !field.IsValid() {
					t.Errorf("no field for %s", name)
					continue
				}
				if got := render(field.Interface()); got != expect(t, name, want) {
					t.Errorf("%s = %s, want %v", name, got, want)
				}
			}
			if group, ok := g.Fields["group"]; ok {
				raw := wire.Header(frame)
				if got, _ := wire.GroupOf(&raw); render(got) != expect(t, "group", group) {
					t.Errorf("GroupOf = %x, want %v", got, group)
				}
			}
		})
	}
	for c := range codecs {
		clientOnly := c == wire.CommandRequest || c == wire.CommandReply || c == wire.CommandEviction
		if !seen[c] && !clientOnly {
			t.Errorf("no recorded frame of %v", c)
		}
	}
}

func camel(name string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(name, "_") {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

// render writes a field the way expect writes the recorded value.
func render(v any) string {
	switch v := v.(type) {
	case wire.U128:
		var b [16]byte
		v.Put(b[:])
		return hex.EncodeToString(b[:])
	case [32]byte:
		return hex.EncodeToString(v[:])
	case bool:
		if v {
			return "1"
		}
		return "0"
	case wire.Operation:
		return fmt.Sprint(uint8(v))
	}
	return fmt.Sprint(v)
}

func expect(t *testing.T, name string, v any) string {
	t.Helper()
	text := fmt.Sprint(v)
	if number, ok := v.(json.Number); ok {
		return number.String()
	}
	if name == "group" {
		if text == "metadata" {
			return fmt.Sprint(wire.MetadataGroup)
		}
		var stream, topic, partition uint64
		if _, err := fmt.Sscanf(text, "%d/%d/%d", &stream, &topic, &partition); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(stream<<32 | topic<<20 | partition)
	}
	return text
}

// TestObservedHandshake recomputes the MACs of a recorded handshake.
func TestObservedHandshake(t *testing.T) {
	frames := map[wire.Command]wire.HandshakeHeader{}
	for _, g := range readGolden(t, "observed-frames.json") {
		if strings.Contains(g.Name, "handshake") {
			var h wire.HandshakeHeader
			if err := h.Decode(g.bytes(t)); err != nil {
				t.Fatal(err)
			}
			frames[h.Command] = h
		}
	}
	hello, challenge, finish := frames[wire.CommandReplicaHello], frames[wire.CommandReplicaChallenge], frames[wire.CommandReplicaFinish]
	key := wire.DeriveHandshakeKey([]byte("replab-shared-secret-0123456789abcdef"))
	transcript := wire.Transcript{
		Cluster: wire.ClusterID("replab"), Dialer: hello.Replica, Acceptor: challenge.Replica,
		NonceD: hello.Nonce, NonceA: challenge.Nonce,
	}
	if hello.Cluster != transcript.Cluster {
		t.Errorf("cluster %x, want %x", hello.Cluster, transcript.Cluster)
	}
	if got := transcript.AcceptorMAC(&key); !wire.EqualMAC(got, challenge.MAC) {
		t.Errorf("acceptor MAC %x, want %x", got, challenge.MAC)
	}
	if got := transcript.DialerMAC(&key); !wire.EqualMAC(got, finish.MAC) {
		t.Errorf("dialer MAC %x, want %x", got, finish.MAC)
	}
	transcript.Acceptor++
	if wire.EqualMAC(transcript.AcceptorMAC(&key), challenge.MAC) {
		t.Error("the MAC does not cover the acceptor")
	}
}

// TestSealCoversEveryByte flips each byte of the sealed recorded headers.
func TestSealCoversEveryByte(t *testing.T) {
	for _, g := range readGolden(t, "observed-frames.json") {
		frame := g.bytes(t)
		c := wire.Command(frame[60])
		if !c.Sealed() {
			continue
		}
		for i := range wire.HeaderSize {
			broken := append([]byte(nil), frame[:wire.HeaderSize]...)
			broken[i] ^= 0x40
			if codecs[c]().Decode(broken) == nil {
				t.Errorf("%s: byte %d changed unnoticed", g.Name, i)
			}
		}
	}
}

// TestIdentityCoversAllButView flips each byte of a recorded prepare: only view, and the command when it is
// that of a repair, leave the identity as it is.
func TestIdentityCoversAllButView(t *testing.T) {
	for _, g := range readGolden(t, "observed-frames.json") {
		frame := g.bytes(t)
		if c := wire.Command(frame[60]); c != wire.CommandPrepare && c != wire.CommandRepairPrepare {
			continue
		}
		for i := range wire.HeaderSize {
			broken := append([]byte(nil), frame[:wire.HeaderSize]...)
			broken[i] ^= 0x40
			var h wire.PrepareHeader
			err := h.Decode(broken)
			if err == nil {
				err = h.Verify()
			}
			if view := i >= 52 && i < 56; view != (err == nil) {
				t.Errorf("%s: byte %d: %v", g.Name, i, err)
			}
		}
		var h wire.PrepareHeader
		if err := h.Decode(frame); err != nil {
			t.Fatal(err)
		}
		h.Command, h.View = wire.CommandRepairPrepare, binary.LittleEndian.Uint32(frame[52:])+7
		if err := h.Verify(); err != nil {
			t.Errorf("%s as repair in another view: %v", g.Name, err)
		}
	}
}
