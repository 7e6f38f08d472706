package wire_test

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/whippet-mq/whippet/libs/wire"
)

// header is a comparable header type with its codec on the pointer.
type header[T any] interface {
	*T
	codec
}

// roundTrip encodes arbitrary values into a dirty buffer, decodes them and compares. valid turns an
// arbitrary value into one that the protocol allows; arrived sets what encoding decides.
func roundTrip[T comparable, P header[T]](t *testing.T, valid func(*T), arrived func(*T, []byte)) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.Make[T]().Draw(t, "header")
		valid(&want)
		b := bytes.Repeat([]byte{0xdb}, wire.HeaderSize+1)
		P(&want).Put(b)
		if b[wire.HeaderSize] != 0xdb {
			t.Fatal("wrote behind the header")
		}
		arrived(&want, b)
		var got T
		if err := P(&got).Decode(b); err != nil {
			t.Fatalf("%v: %+v", err, want)
		}
		if got != want {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
		for n := range wire.HeaderSize {
			if P(&got).Decode(b[:n:n]) == nil {
				t.Fatalf("%d bytes decoded", n)
			}
		}
	})
}

// sealed is a round trip of a header with a preamble, whose command and seal are set by encoding.
func sealed[T comparable, P header[T]](t *testing.T, c wire.Command, preamble func(*T) *wire.Preamble, valid func(*T)) {
	t.Helper()
	roundTrip[T, P](t, func(h *T) {
		p := preamble(h)
		p.Size, p.Release, p.Command = wire.HeaderSize, 0, c
		if valid != nil {
			valid(h)
		}
	}, func(h *T, b []byte) {
		p := preamble(h)
		if c.Sealed() {
			p.Checksum = wire.DecodeU128(b)
		}
	})
}

func operation(o wire.Operation) wire.Operation {
	if !o.Known() && !o.Native() {
		return wire.OpSendMessages
	}
	return o
}

func TestClientHeadersRoundTrip(t *testing.T) {
	t.Run("request", func(t *testing.T) {
		roundTrip[wire.RequestHeader](t, func(*wire.RequestHeader) {}, func(*wire.RequestHeader, []byte) {})
	})
	t.Run("reply", func(t *testing.T) {
		roundTrip[wire.ReplyHeader](t, func(h *wire.ReplyHeader) {
			if !h.Operation.Known() {
				h.Operation = wire.OpNonReplicated
			}
		}, func(*wire.ReplyHeader, []byte) {})
	})
	t.Run("eviction", func(t *testing.T) {
		roundTrip[wire.EvictionHeader](t, func(h *wire.EvictionHeader) {
			h.Client.Hi |= 1
			h.Reason = h.Reason%15 + 1
		}, func(*wire.EvictionHeader, []byte) {})
	})
	t.Run("prepare", func(t *testing.T) {
		roundTrip[wire.PrepareHeader](t, func(h *wire.PrepareHeader) {
			h.Operation = operation(h.Operation)
			if h.Command %= 2; h.Command == 0 {
				h.Command = wire.CommandPrepare
			} else {
				h.Command = wire.CommandRepairPrepare
			}
		}, func(*wire.PrepareHeader, []byte) {})
	})
}

func TestReplicationHeadersRoundTrip(t *testing.T) {
	t.Run("prepare ok", func(t *testing.T) {
		sealed[wire.PrepareOkHeader](t, wire.CommandPrepareOk, func(h *wire.PrepareOkHeader) *wire.Preamble { return &h.Preamble },
			func(h *wire.PrepareOkHeader) { h.Operation = operation(h.Operation) })
	})
	t.Run("commit", func(t *testing.T) {
		sealed[wire.CommitHeader](t, wire.CommandCommit, func(h *wire.CommitHeader) *wire.Preamble { return &h.Preamble }, nil)
	})
	t.Run("start view change", func(t *testing.T) {
		sealed[wire.StartViewChangeHeader](t, wire.CommandStartViewChange,
			func(h *wire.StartViewChangeHeader) *wire.Preamble { return &h.Preamble }, nil)
	})
	t.Run("do view change", func(t *testing.T) {
		sealed[wire.DoViewChangeHeader](t, wire.CommandDoViewChange, func(h *wire.DoViewChangeHeader) *wire.Preamble { return &h.Preamble },
			func(h *wire.DoViewChangeHeader) {
				h.LogView, h.Commit = min(h.LogView, h.View), min(h.Commit, h.Op)
				entries := uint32(h.Op % (wire.MaxSuffix + 1))
				h.Size = wire.HeaderSize * (1 + entries)
				h.Nack, h.Present = below(h.Nack, entries), below(h.Present, entries)
			})
	})
	t.Run("start view", func(t *testing.T) {
		sealed[wire.StartViewHeader](t, wire.CommandStartView, func(h *wire.StartViewHeader) *wire.Preamble { return &h.Preamble },
			func(h *wire.StartViewHeader) { h.Commit = min(h.Commit, h.Op) })
	})
	t.Run("request start view", func(t *testing.T) {
		sealed[wire.RequestStartViewHeader](t, wire.CommandRequestStartView,
			func(h *wire.RequestStartViewHeader) *wire.Preamble { return &h.Preamble }, nil)
	})
}

// below clears the bits of u from n on.
func below(u wire.U128, n uint32) (low wire.U128) {
	for i := range int(n) {
		if u.Bit(i) {
			low = low.WithBit(i)
		}
	}
	return low
}

func TestRepairHeadersRoundTrip(t *testing.T) {
	t.Run("request prepares", func(t *testing.T) {
		sealed[wire.RequestPreparesHeader](t, wire.CommandRequestPrepares,
			func(h *wire.RequestPreparesHeader) *wire.Preamble { return &h.Preamble },
			func(h *wire.RequestPreparesHeader) {
				h.ToOp = max(h.ToOp, 1)
				h.FromOp = max(min(h.FromOp, h.ToOp), 1)
			})
	})
	for _, c := range []wire.Command{wire.CommandRepairDone, wire.CommandRangeEvicted} {
		t.Run(c.String(), func(t *testing.T) {
			sealed[wire.RepairEndHeader](t, c, func(h *wire.RepairEndHeader) *wire.Preamble { return &h.Preamble }, nil)
		})
	}
	t.Run("request state transfer", func(t *testing.T) {
		sealed[wire.RequestStateTransferHeader](t, wire.CommandRequestStateTransfer,
			func(h *wire.RequestStateTransferHeader) *wire.Preamble { return &h.Preamble }, nil)
	})
	t.Run("state transfer target", func(t *testing.T) {
		sealed[wire.StateTransferTargetHeader](t, wire.CommandStateTransferTarget,
			func(h *wire.StateTransferTargetHeader) *wire.Preamble { return &h.Preamble },
			func(h *wire.StateTransferTargetHeader) { h.Transient = h.Transient && !h.Available })
	})
	t.Run("request state chunk", func(t *testing.T) {
		sealed[wire.RequestStateChunkHeader](t, wire.CommandRequestStateChunk,
			func(h *wire.RequestStateChunkHeader) *wire.Preamble { return &h.Preamble },
			func(h *wire.RequestStateChunkHeader) { h.Len = max(h.Len, 1) })
	})
	t.Run("state chunk", func(t *testing.T) {
		sealed[wire.StateChunkHeader](t, wire.CommandStateChunk, func(h *wire.StateChunkHeader) *wire.Preamble { return &h.Preamble }, nil)
	})
}

func TestSessionHeadersRoundTrip(t *testing.T) {
	t.Run("forward register", func(t *testing.T) {
		sealed[wire.ForwardRegisterHeader](t, wire.CommandForwardRegister,
			func(h *wire.ForwardRegisterHeader) *wire.Preamble { return &h.Preamble },
			func(h *wire.ForwardRegisterHeader) { h.Client.Lo |= 1; h.Nonce.Hi |= 1 })
	})
	t.Run("forward register result", func(t *testing.T) {
		sealed[wire.ForwardRegisterResultHeader](t, wire.CommandForwardRegisterResult,
			func(h *wire.ForwardRegisterResultHeader) *wire.Preamble { return &h.Preamble },
			func(h *wire.ForwardRegisterResultHeader) {
				h.Client.Lo |= 1
				h.Nonce.Hi |= 1
				if h.Outcome %= 7; h.Outcome != wire.RegisterOk {
					h.Epoch, h.Watermark = 0, 0
				}
			})
	})
	t.Run("forward logout", func(t *testing.T) {
		sealed[wire.ForwardLogoutHeader](t, wire.CommandForwardLogout,
			func(h *wire.ForwardLogoutHeader) *wire.Preamble { return &h.Preamble },
			func(h *wire.ForwardLogoutHeader) {
				h.Client.Lo |= 1
				h.Nonce.Hi |= 1
				h.Session, h.Request = max(h.Session, 1), max(h.Request, 1)
			})
	})
	t.Run("forward logout result", func(t *testing.T) {
		sealed[wire.ForwardLogoutResultHeader](t, wire.CommandForwardLogoutResult,
			func(h *wire.ForwardLogoutResultHeader) *wire.Preamble { return &h.Preamble },
			func(h *wire.ForwardLogoutResultHeader) {
				h.Client.Lo |= 1
				h.Nonce.Hi |= 1
				if h.Outcome %= 5; h.Outcome != wire.LogoutOk {
					h.Commit = 0
				}
			})
	})
	for c := wire.CommandReplicaHello; c <= wire.CommandReplicaFinish; c++ {
		t.Run(c.String(), func(t *testing.T) {
			sealed[wire.HandshakeHeader](t, c, func(h *wire.HandshakeHeader) *wire.Preamble { return &h.Preamble }, nil)
		})
	}
}
