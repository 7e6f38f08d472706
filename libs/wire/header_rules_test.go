package wire_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
)

// rule is one check of a decoder: a good frame, changed, and what must come of it. The frame is sealed
// again after the change where its command is sealed.
type rule struct {
	name   string
	good   codec
	change func(b []byte)
	want   error
}

func set8(at int, v byte) func([]byte) { return func(b []byte) { b[at] = v } }
func set32(at int, v uint32) func([]byte) {
	return func(b []byte) { binary.LittleEndian.PutUint32(b[at:], v) }
}
func set64(at int, v uint64) func([]byte) {
	return func(b []byte) { binary.LittleEndian.PutUint64(b[at:], v) }
}

var one = wire.U128{Lo: 1}

// rules are the field checks of replica-wire.md §2.1 and client-wire.md §3, one entry each.
var rules = []rule{
	{"any/size below a header", &wire.CommitHeader{}, set32(48, 255), wire.ErrSize},
	{"any/other command", &wire.CommitHeader{}, set8(60, 10), wire.ErrCommand},

	{"prepare/reserved frame", &wire.PrepareHeader{Command: 6}, set8(62, 1), wire.ErrReserved},
	{"prepare/reserved frame end", &wire.PrepareHeader{Command: 6}, set8(127, 1), wire.ErrReserved},
	{"prepare/reserved", &wire.PrepareHeader{Command: 6}, set8(228, 1), wire.ErrReserved},
	{"prepare/reserved end", &wire.PrepareHeader{Command: 6}, set8(255, 1), wire.ErrReserved},
	{"prepare/padding is free", &wire.PrepareHeader{Command: 6}, set8(215, 1), nil},
	{"prepare/operation", &wire.PrepareHeader{Command: 6}, set8(208, 4), wire.ErrOperation},
	{"prepare/native operation", &wire.PrepareHeader{Command: 6}, set8(208, 96), nil},
	{"prepare ok/operation", &wire.PrepareOkHeader{}, set8(192, 150), wire.ErrOperation},
	{"prepare ok/body", &wire.PrepareOkHeader{}, set32(48, 257), wire.ErrSize},
	{"commit/body", &wire.CommitHeader{}, set32(48, 512), wire.ErrSize},
	{"commit/reserved is free", &wire.CommitHeader{}, set8(255, 1), nil},

	{"svc/release", &wire.StartViewChangeHeader{}, set32(56, 1), wire.ErrField},
	{"rsv/release", &wire.RequestStartViewHeader{}, set32(56, 1), wire.ErrField},
	{"dvc/release", &wire.DoViewChangeHeader{}, set32(56, 1), wire.ErrField},
	{"dvc/log view", &wire.DoViewChangeHeader{Preamble: wire.Preamble{View: 3}}, set32(152, 4), wire.ErrField},
	{"dvc/log view at view", &wire.DoViewChangeHeader{Preamble: wire.Preamble{View: 3}}, set32(152, 3), nil},
	{"dvc/commit above op", &wire.DoViewChangeHeader{Op: 5}, set64(136, 6), wire.ErrField},
	{"dvc/broken size", &wire.DoViewChangeHeader{Op: 5}, set32(48, 513), wire.ErrSize},
	{"dvc/129 entries", &wire.DoViewChangeHeader{Op: 500}, set32(48, 256*130), wire.ErrSize},
	{"dvc/128 entries", &wire.DoViewChangeHeader{Op: 500}, set32(48, 256*129), nil},
	{"dvc/nack above the entries", &wire.DoViewChangeHeader{}, set8(224, 1), wire.ErrField},
	{"dvc/present above the entries", &wire.DoViewChangeHeader{}, set8(255, 0x80), wire.ErrField},
	{"sv/release", &wire.StartViewHeader{}, set32(56, 1), wire.ErrField},
	{"sv/commit above op", &wire.StartViewHeader{Op: 5}, set64(136, 6), wire.ErrField},
	{"sv/broken size", &wire.StartViewHeader{}, set32(48, 300), wire.ErrSize},

	{"fetch/from 0", &wire.RequestPreparesHeader{FromOp: 1, ToOp: 2}, set64(144, 0), wire.ErrField},
	{"fetch/backwards", &wire.RequestPreparesHeader{FromOp: 2, ToOp: 2}, set64(152, 1), wire.ErrField},
	{"transfer/body", &wire.RequestStateTransferHeader{}, set32(48, 257), wire.ErrSize},
	{"target/flag 2", &wire.StateTransferTargetHeader{}, set8(160, 2), wire.ErrField},
	{"target/both flags", &wire.StateTransferTargetHeader{Available: true}, set8(161, 1), wire.ErrField},
	{"target/body without offer", &wire.StateTransferTargetHeader{}, set32(48, 300), wire.ErrSize},
	{"chunk request/nothing", &wire.RequestStateChunkHeader{Len: 1}, set32(160, 0), wire.ErrField},
	{"chunk request/body", &wire.RequestStateChunkHeader{Len: 1}, set32(48, 300), wire.ErrSize},

	{"register/client 0", &wire.ForwardRegisterHeader{Client: one, Nonce: one}, set8(128, 0), wire.ErrField},
	{"register/nonce 0", &wire.ForwardRegisterHeader{Client: one, Nonce: one}, set8(144, 0), wire.ErrField},
	{"register/reserved", &wire.ForwardRegisterHeader{Client: one, Nonce: one}, set8(255, 1), wire.ErrReserved},
	{"register/reserved frame is free", &wire.ForwardRegisterHeader{Client: one, Nonce: one}, set8(62, 1), nil},
	{"register/body", &wire.ForwardRegisterHeader{Client: one, Nonce: one}, set32(48, 257), wire.ErrSize},
	{"register result/outcome", &wire.ForwardRegisterResultHeader{Client: one, Nonce: one}, set8(255, 7), wire.ErrOutcome},
	{"register result/epoch of a refusal", &wire.ForwardRegisterResultHeader{Client: one, Nonce: one, Epoch: 1}, set8(255, 1), wire.ErrField},
	{"logout/session 0", &wire.ForwardLogoutHeader{Client: one, Nonce: one, Session: 1, Request: 1}, set8(160, 0), wire.ErrField},
	{"logout/request 0", &wire.ForwardLogoutHeader{Client: one, Nonce: one, Session: 1, Request: 1}, set8(168, 0), wire.ErrField},
	{"logout result/outcome", &wire.ForwardLogoutResultHeader{Client: one, Nonce: one}, set8(255, 5), wire.ErrOutcome},
	{"logout result/commit of a refusal", &wire.ForwardLogoutResultHeader{Client: one, Nonce: one, Commit: 1}, set8(255, 4), wire.ErrField},

	{"eviction/reserved", &wire.EvictionHeader{Client: one, Reason: 1}, set8(254, 1), wire.ErrReserved},
	{"eviction/reserved frame", &wire.EvictionHeader{Client: one, Reason: 1}, set8(62, 1), wire.ErrReserved},
	{"eviction/client 0", &wire.EvictionHeader{Client: one, Reason: 1}, set8(128, 0), wire.ErrField},
	{"eviction/reason 0", &wire.EvictionHeader{Client: one, Reason: 1}, set8(255, 0), wire.ErrReason},
	{"eviction/reason 16", &wire.EvictionHeader{Client: one, Reason: 1}, set8(255, 16), wire.ErrReason},
	{"eviction/size", &wire.EvictionHeader{Client: one, Reason: 1}, set32(48, 257), wire.ErrSize},
	{"reply/operation", &wire.ReplyHeader{}, set8(208, 99), wire.ErrOperation},
	{"reply/reserved is free", &wire.ReplyHeader{}, set8(255, 9), nil},
	{"request/unknown operation still decodes", &wire.RequestHeader{}, set8(176, 99), nil},
	{"hello/body", &wire.HandshakeHeader{Preamble: wire.Preamble{Command: 14}}, set32(48, 257), wire.ErrSize},
	{"hello/other command", &wire.HandshakeHeader{Preamble: wire.Preamble{Command: 14}}, set8(60, 17), wire.ErrCommand},
}

func TestHeaderRules(t *testing.T) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			b := make([]byte, wire.HeaderSize)
			r.good.Put(b)
			fresh := codecs[wire.Command(b[60])]()
			if err := fresh.Decode(b); err != nil {
				t.Fatalf("good frame: %v", err)
			}
			c := wire.Command(b[60])
			r.change(b)
			if c.Sealed() {
				wire.Seal(b)
			}
			if err := codecs[c]().Decode(b); !errors.Is(err, r.want) {
				t.Errorf("%v, want %v", err, r.want)
			}
		})
	}
}

// TestSealRequired: a sealed command with a zero seal is dropped, whatever its fields say.
func TestSealRequired(t *testing.T) {
	for c, make := range codecs {
		if !c.Sealed() {
			continue
		}
		var b [wire.HeaderSize]byte
		b[60], b[49] = byte(c), 1
		if err := make().Decode(b[:]); !errors.Is(err, wire.ErrSeal) {
			t.Errorf("%v: %v", c, err)
		}
	}
}

func TestRequestValidate(t *testing.T) {
	good := wire.RequestHeader{Client: one, Operation: wire.OpCreateStream, Session: 4, Request: 1}
	for name, c := range map[string]struct {
		change func(*wire.RequestHeader)
		want   error
	}{
		"good":                  {func(*wire.RequestHeader) {}, nil},
		"no client":             {func(h *wire.RequestHeader) { h.Client = wire.U128{} }, wire.ErrField},
		"reserved operation":    {func(h *wire.RequestHeader) { h.Operation = 0 }, wire.ErrOperation},
		"unknown operation":     {func(h *wire.RequestHeader) { h.Operation = 150 }, wire.ErrOperation},
		"native operation":      {func(h *wire.RequestHeader) { h.Operation = wire.OpSealPartition }, wire.ErrOperation},
		"no session":            {func(h *wire.RequestHeader) { h.Session = 0 }, wire.ErrField},
		"no request":            {func(h *wire.RequestHeader) { h.Request = 0 }, wire.ErrField},
		"register with session": {func(h *wire.RequestHeader) { h.Operation, h.Request = wire.OpRegister, 0 }, wire.ErrField},
		"register with request": {func(h *wire.RequestHeader) { h.Operation, h.Session = wire.OpRegister, 0 }, wire.ErrField},
		"register":              {func(h *wire.RequestHeader) { h.Operation, h.Session, h.Request = wire.OpRegister, 0, 0 }, nil},
		"read without session":  {func(h *wire.RequestHeader) { h.Operation, h.Session, h.Request = wire.OpNonReplicated, 0, 0 }, nil},
	} {
		h := good
		c.change(&h)
		if err := h.Validate(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestFrameSize(t *testing.T) {
	b := make([]byte, wire.HeaderSize)
	for size, want := range map[uint32]error{0: wire.ErrSize, 255: wire.ErrSize, 256: nil, 1000: nil, 1001: wire.ErrSize} {
		set32(48, size)(b)
		if got, err := wire.FrameSize(b, 1000); !errors.Is(err, want) || err == nil && got != size {
			t.Errorf("%d: %d, %v", size, got, err)
		}
	}
	set32(48, 256)(b)
	b[60] = 30
	if _, err := wire.FrameSize(b, 1000); !errors.Is(err, wire.ErrCommand) {
		t.Errorf("unknown command: %v", err)
	}
	if _, err := wire.FrameSize(b[:255], 1000); !errors.Is(err, wire.ErrShort) {
		t.Errorf("short header: %v", err)
	}
}
