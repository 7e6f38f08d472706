package wire_test

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"strings"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
)

const vectorCluster = "iggy-cluster"

var vectorClient = wire.U128{Lo: 0xcafef00d, Hi: 1 << 48}

// vectorFields are expectations written down from the inputs of the vectors; the other fields of a frame
// are pinned by encoding it back.
var vectorFields = map[string]codec{
	"frame/commit-sealed":               &wire.CommitHeader{Commit: 41, Group: wire.MetadataGroup, TimestampMonotonic: 4711},
	"frame/prepare-register-op1":        &wire.PrepareHeader{Client: vectorClient, Op: 1, Timestamp: 1785500000000000, Operation: wire.OpRegister, Group: wire.MetadataGroup},
	"frame/prepare-create-stream-view0": &wire.PrepareHeader{Op: 2, Commit: 1, Request: 1, Timestamp: 1785500000000017, Operation: wire.OpCreateStream},
	"frame/start-view-change":           &wire.StartViewChangeHeader{Group: wire.MetadataGroup},
	"frame/do-view-change": &wire.DoViewChangeHeader{
		Op: 5, Commit: 3, LogView: 12, Group: wire.MetadataGroup, Nack: wire.U128{Lo: 2}, Present: wire.U128{Lo: 5},
	},
	"frame/do-view-change-empty-log":              &wire.DoViewChangeHeader{Group: 7},
	"frame/start-view-broadcast":                  &wire.StartViewHeader{Op: 3, Commit: 3},
	"frame/request-start-view":                    &wire.RequestStartViewHeader{Incarnation: wire.U128{Lo: 0x0123456789abcdef, Hi: 0xfedcba9876543210}},
	"frame/start-view-probe-answer":               &wire.StartViewHeader{Op: 3, Commit: 3, Incarnation: wire.U128{Lo: 0x0123456789abcdef, Hi: 0xfedcba9876543210}},
	"frame/request-prepares":                      &wire.RequestPreparesHeader{Nonce: wire.U128{Lo: 0x1111111111111111, Hi: 0x2222222222222222}, FromOp: 2, ToOp: 3, Group: wire.MetadataGroup},
	"frame/repair-done":                           &wire.RepairEndHeader{Op: 3},
	"frame/range-evicted":                         &wire.RepairEndHeader{Op: 130},
	"frame/request-state-transfer":                &wire.RequestStateTransferHeader{Group: wire.MetadataGroup},
	"frame/state-transfer-target":                 &wire.StateTransferTargetHeader{CommitOp: 195, CommitMax: 197, Available: true},
	"frame/request-state-chunk":                   &wire.RequestStateChunkHeader{Len: 262144},
	"frame/forward-register":                      &wire.ForwardRegisterHeader{Client: wire.U128{Lo: 0xcafe}, Nonce: wire.U128{Lo: 0xf00d}, UserID: 41},
	"frame/forward-register-result-ok":            &wire.ForwardRegisterResultHeader{Client: wire.U128{Lo: 0xcafe}, Nonce: wire.U128{Lo: 0xf00d}, Epoch: 1207, Watermark: 9},
	"frame/forward-logout":                        &wire.ForwardLogoutHeader{Client: wire.U128{Lo: 0xcafe}, Nonce: wire.U128{Lo: 0xf00e}, Session: 1207, Request: 10},
	"frame/forward-logout-result-ok":              &wire.ForwardLogoutResultHeader{Commit: 1300},
	"frame/prepare-send-messages":                 &wire.PrepareHeader{Op: 21, Commit: 20, Parent: wire.U128{Lo: 0xabcdef}, Group: wire.GroupID(1, 1, 7, 0), Operation: wire.OpSendMessages},
	"frame/prepare-auto-commit-offset":            &wire.PrepareHeader{Client: wire.U128{Lo: ^uint64(0), Hi: ^uint64(0)}, Request: 1, Operation: wire.OpStoreOffset},
	"frame/state-transfer-target-refused":         &wire.StateTransferTargetHeader{CommitMax: 197, Transient: true},
	"frame/forward-register-result-pipeline-full": &wire.ForwardRegisterResultHeader{Outcome: wire.RegisterBusy},
}

// elsewhere are the vectors that other tests check.
var elsewhere = []string{"batch/", "snapshot/", "superblock/", "offset-file/", "purge-gen/"}

func TestReplicaVectors(t *testing.T) {
	vectors := map[string][]byte{}
	for _, g := range readGolden(t, "replica-wire.json") {
		vectors[g.Name] = g.bytes(t)
	}
	for name, b := range vectors {
		t.Run(name, func(t *testing.T) {
			switch kind, _, _ := strings.Cut(name, "/"); kind {
			case "frame":
				h := checkFrame(t, b)
				if want := vectorFields[name]; want != nil {
					compareSet(t, h, want)
				}
			case "dvc":
				var h wire.PrepareHeader
				if err := h.Decode(b); err != nil || !h.Blank() || h.Op != 4 {
					t.Errorf("%+v, %v", h, err)
				}
			case "handshake":
				checkHandshake(t, name, b)
			case "cluster-id":
				cluster := strings.TrimPrefix(name, "cluster-id/")
				if cluster == "empty" {
					cluster = ""
				}
				if got := wire.ClusterID(cluster); got != wire.DecodeU128(b) {
					t.Errorf("%x", got)
				}
			case "xxh3":
				if got := wire.SealBody(nil); got.Lo != wire.DecodeU128(append(b, make([]byte, 8)...)).Lo {
					t.Errorf("%x", got)
				}
			case "group":
				checkGroup(t, name, b)
			case "body":
				checkLogged(t, strings.TrimPrefix(name, "body/"), b)
			case "manifest":
				checkManifest(t, b)
			case "client-table":
				checkClientTable(t, b)
			case "consumer-offsets":
				checkOffsets(t, b)
			default:
				for _, prefix := range elsewhere {
					if strings.HasPrefix(name, prefix) {
						return
					}
				}
				t.Error("no test knows this vector")
			}
		})
	}
	if got, want := vectors["frame/prepare-create-stream-view12"], vectors["frame/prepare-create-stream-view0"]; !bytes.Equal(got[:16], want[:16]) {
		t.Error("a new view changed the identity")
	}
}

// compareSet compares the fields of want that are not zero.
func compareSet(t *testing.T, got, want codec) {
	t.Helper()
	g, w := reflect.ValueOf(got).Elem(), reflect.ValueOf(want).Elem()
	for i := range w.NumField() {
		if !w.Field(i).IsZero() && !reflect.DeepEqual(g.Field(i).Interface(), w.Field(i).Interface()) {
			t.Errorf("%s = %v, want %v", w.Type().Field(i).Name, g.Field(i), w.Field(i))
		}
	}
}

func checkGroup(t *testing.T, name string, b []byte) {
	t.Helper()
	want := map[string]uint64{
		"group/0-0-0": wire.GroupID(0, 0, 0, 0), "group/0-0-7": wire.GroupID(0, 0, 7, 0), "group/1-1-7": wire.GroupID(1, 1, 7, 0),
		"group/3-5-9": wire.GroupID(3, 5, 9, 0), "group/1048575-4095-999999": wire.GroupID(1048575, 4095, 999999, 0),
		"group/metadata": wire.MetadataGroup,
	}
	if got := wire.DecodeU128(append(b, make([]byte, 8)...)).Lo; got != want[name] {
		t.Errorf("%x, want %x", got, want[name])
	}
}

func checkHandshake(t *testing.T, name string, b []byte) {
	t.Helper()
	secret := []byte("0123456789abcdef0123456789abcdef")
	key := wire.DeriveHandshakeKey(secret)
	unit := wire.Transcript{Cluster: wire.U128{Lo: 0xdeadbeef}, Dialer: 3, Acceptor: 1}
	copy(unit.NonceD[:], bytes.Repeat([]byte{0x11}, 32))
	copy(unit.NonceA[:], bytes.Repeat([]byte{0x22}, 32))
	secure := unit
	secure.TLS = true
	copy(secure.Exporter[:], bytes.Repeat([]byte{0xaa}, 32))
	equal := func(got [32]byte) {
		t.Helper()
		if !bytes.Equal(got[:], b) {
			t.Errorf("%x, want %x", got, b)
		}
	}
	switch strings.TrimPrefix(name, "handshake/") {
	case "mac-subkey":
		equal(key)
	case "mac-acceptor-plaintext":
		equal(unit.AcceptorMAC(&key))
	case "mac-dialer-plaintext":
		equal(unit.DialerMAC(&key))
	case "mac-acceptor-tls":
		equal(secure.AcceptorMAC(&key))
	case "mac-dialer-tls":
		equal(secure.DialerMAC(&key))
	case "transcript-acceptor-plaintext":
		if len(b) != 143 { // pinned through the MACs
			t.Errorf("%d bytes", len(b))
		}
	default:
		h := checkFrame(t, b).(*wire.HandshakeHeader)
		if h.Cluster != wire.ClusterID(vectorCluster) {
			t.Errorf("cluster %x", h.Cluster)
		}
		if refused := strings.Contains(name, "reject"); refused != (h.Status == wire.HandshakeClusterMismatch) {
			t.Errorf("status %d", h.Status)
		}
	}
}

func checkClientTable(t *testing.T, b []byte) []wire.ClientEntry {
	t.Helper()
	list, err := wire.DecodeClientTable(b)
	if err != nil {
		t.Fatal(err)
	}
	if again := wire.AppendClientTable(nil, list); !bytes.Equal(again, b) {
		t.Errorf("encoded again:\n%x\nwant\n%x", again, b)
	}
	return list
}

func checkOffsets(t *testing.T, b []byte) wire.ConsumerOffsets {
	t.Helper()
	o, err := wire.DecodeConsumerOffsets(b)
	if err != nil {
		t.Fatal(err)
	}
	if again := o.Append(nil); !bytes.Equal(again, b) {
		t.Errorf("encoded again:\n%x\nwant\n%x", again, b)
	}
	return o
}

// TestObservedArtifacts decodes artifacts that a real node transferred.
func TestObservedArtifacts(t *testing.T) {
	for _, g := range readGolden(t, "observed-artifacts.json") {
		b := g.bytes(t)
		switch hex.EncodeToString(b[:4]) {
		case hex.EncodeToString([]byte("ICT2")):
			if list := checkClientTable(t, b); len(list) == 0 {
				t.Error("empty client table")
			}
		case hex.EncodeToString([]byte("ICO1")):
			checkOffsets(t, b)
		}
	}
}

func TestConsumerOffsetsSample(t *testing.T) {
	for _, g := range readGolden(t, "replica-wire.json") {
		if g.Name != "consumer-offsets/sample" {
			continue
		}
		want := wire.ConsumerOffsets{
			PurgeGeneration: 2, NextOffset: 5000,
			Consumers: []wire.OffsetEntry{{ID: 1, Offset: 10}, {ID: 9, Offset: 20}}, Groups: []wire.OffsetEntry{{ID: 4, Offset: 4999}},
		}
		if got := checkOffsets(t, g.bytes(t)); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v", got)
		}
	}
}
