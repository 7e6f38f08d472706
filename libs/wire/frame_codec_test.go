package wire_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
)

// codec is what every header is tested through.
type codec interface {
	Decode([]byte) error
	Put([]byte)
}

// codecs makes an empty header for each command that has one.
var codecs = map[wire.Command]func() codec{
	wire.CommandRequest:               func() codec { return new(wire.RequestHeader) },
	wire.CommandPrepare:               func() codec { return new(wire.PrepareHeader) },
	wire.CommandPrepareOk:             func() codec { return new(wire.PrepareOkHeader) },
	wire.CommandReply:                 func() codec { return new(wire.ReplyHeader) },
	wire.CommandCommit:                func() codec { return new(wire.CommitHeader) },
	wire.CommandStartViewChange:       func() codec { return new(wire.StartViewChangeHeader) },
	wire.CommandDoViewChange:          func() codec { return new(wire.DoViewChangeHeader) },
	wire.CommandStartView:             func() codec { return new(wire.StartViewHeader) },
	wire.CommandEviction:              func() codec { return new(wire.EvictionHeader) },
	wire.CommandReplicaHello:          func() codec { return new(wire.HandshakeHeader) },
	wire.CommandReplicaChallenge:      func() codec { return new(wire.HandshakeHeader) },
	wire.CommandReplicaFinish:         func() codec { return new(wire.HandshakeHeader) },
	wire.CommandRequestStartView:      func() codec { return new(wire.RequestStartViewHeader) },
	wire.CommandRequestPrepares:       func() codec { return new(wire.RequestPreparesHeader) },
	wire.CommandRepairPrepare:         func() codec { return new(wire.PrepareHeader) },
	wire.CommandRepairDone:            func() codec { return new(wire.RepairEndHeader) },
	wire.CommandRangeEvicted:          func() codec { return new(wire.RepairEndHeader) },
	wire.CommandRequestStateTransfer:  func() codec { return new(wire.RequestStateTransferHeader) },
	wire.CommandStateTransferTarget:   func() codec { return new(wire.StateTransferTargetHeader) },
	wire.CommandRequestStateChunk:     func() codec { return new(wire.RequestStateChunkHeader) },
	wire.CommandStateChunk:            func() codec { return new(wire.StateChunkHeader) },
	wire.CommandForwardRegister:       func() codec { return new(wire.ForwardRegisterHeader) },
	wire.CommandForwardRegisterResult: func() codec { return new(wire.ForwardRegisterResultHeader) },
	wire.CommandForwardLogout:         func() codec { return new(wire.ForwardLogoutHeader) },
	wire.CommandForwardLogoutResult:   func() codec { return new(wire.ForwardLogoutResultHeader) },
}

// golden is one entry of a vector file.
type golden struct {
	Name   string         `json:"name"`
	Hex    string         `json:"hex"`
	Fields map[string]any `json:"fields"`
	Inputs any            `json:"inputs"`
}

func (g *golden) bytes(t testing.TB) []byte {
	t.Helper()
	b, err := hex.DecodeString(g.Hex)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func readGolden(t testing.TB, file string) []golden {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var list []golden
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&list); err != nil {
		t.Fatal(err)
	}
	return list
}

// checkFrame decodes a good frame with all its checks and encodes it back to the same bytes.
func checkFrame(t *testing.T, frame []byte) codec {
	t.Helper()
	if size, err := wire.FrameSize(frame, wire.MaxFrameSize); err != nil || int(size) != len(frame) {
		t.Fatalf("FrameSize = %d, %v for %d bytes", size, err, len(frame))
	}
	h := codecs[wire.Command(frame[60])]()
	if err := h.Decode(frame); err != nil {
		t.Fatalf("Decode: %v", err)
	}
	again := bytes.Repeat([]byte{0xdb}, wire.HeaderSize)
	h.Put(again)
	if !bytes.Equal(again, frame[:wire.HeaderSize]) {
		t.Errorf("encoded again:\n%x\nwant\n%x", again, frame[:wire.HeaderSize])
	}
	body := frame[wire.HeaderSize:]
	switch h := h.(type) {
	case *wire.PrepareHeader:
		checkPrepare(t, h, body)
	case *wire.DoViewChangeHeader:
		checkSuffix(t, body, h.Op, h.ChecksumBody)
	case *wire.StartViewHeader:
		checkSuffix(t, body, h.Op, h.ChecksumBody)
	case *wire.StateTransferTargetHeader:
		if h.Available {
			checkManifest(t, body)
		}
	}
	return h
}

func checkPrepare(t *testing.T, h *wire.PrepareHeader, body []byte) {
	t.Helper()
	if err := h.Verify(); err != nil {
		t.Error(err)
	}
	want := wire.U128{}
	if h.Group == wire.MetadataGroup {
		want = wire.SealBody(body)
	}
	if h.ChecksumBody != want || h.BodySize() != len(body) {
		t.Errorf("body checksum %x, want %x", h.ChecksumBody, want)
	}
}

func checkSuffix(t *testing.T, body []byte, head uint64, checksum wire.U128) []wire.PrepareHeader {
	t.Helper()
	suffix, err := wire.DecodeSuffix(nil, body, head, checksum)
	if err != nil {
		t.Fatalf("DecodeSuffix: %v", err)
	}
	if again := wire.AppendSuffix(nil, suffix); !bytes.Equal(again, body) {
		t.Errorf("suffix encoded again:\n%x\nwant\n%x", again, body)
	}
	return suffix
}

func checkManifest(t *testing.T, body []byte) []wire.Artifact {
	t.Helper()
	list, err := wire.DecodeManifest(body)
	if err != nil {
		t.Fatalf("DecodeManifest: %v", err)
	}
	if again := wire.AppendManifest(nil, list); !bytes.Equal(again, body) {
		t.Errorf("manifest encoded again:\n%x\nwant\n%x", again, body)
	}
	return list
}
