package vsr_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// TestSoloModel drives a group of one with random proposals, completions, failures, rollbacks, kills and
// power cuts, and checks the log after every step.
func TestSoloModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{stage: newStage(), acked: map[uint64]wire.U128{}}
		m.run("group" + rapid.SampledFrom([]string{"", " synced", " metadata synced", " pipeline=3"}).Draw(t, "policy"))
		t.Repeat(map[string]func(*rapid.T){
			"propose": m.propose,
			"write":   m.write,
			"sync":    m.sync,
			"fail":    m.fail,
			"undo":    m.undo,
			"restart": m.kill,
			"power":   m.power,
			"trim":    func(*rapid.T) { m.replica.Trim() },
			"":        m.check,
		})
	})
}

// model is a stage that remembers what was acknowledged.
type model struct {
	*stage
	acked map[uint64]wire.U128
}

func (m *model) propose(t *rapid.T) {
	m.now = rapid.Uint64Range(1, 1<<20).Draw(t, "now")
	before := len(m.log)
	m.stage.propose(arguments{"client": rapid.Uint64Range(1, 4).Draw(t, "client"), "hash": 5})
	if got := len(m.log) + len(m.out.Refused); got != before+1 {
		t.Fatalf("a request got %d answers", got-before)
	}
}

func (m *model) write(t *rapid.T) { m.finish(t, vsr.InputWritten, &m.written) }
func (m *model) sync(t *rapid.T) {
	m.finish(t, vsr.InputSynced, &m.synced)
	m.written = max(m.written, m.synced)
}

func (m *model) finish(t *rapid.T, kind vsr.InputKind, mark *uint64) {
	m.complete(kind, mark, arguments{"to": rapid.Uint64Range(*mark, uint64(len(m.log))).Draw(t, "to")})
	for op := uint64(1); op <= m.replica.Commit(); op++ {
		if want, ok := m.acked[op]; ok && want != m.log[op-1].Checksum {
			t.Fatalf("op %d acknowledged twice", op)
		}
		m.acked[op] = m.log[op-1].Checksum
	}
}

// fail loses a part of the log that has not been completed.
func (m *model) fail(t *rapid.T) {
	if low := m.written + 1; low <= uint64(len(m.log)) {
		op := rapid.Uint64Range(low, uint64(len(m.log))).Draw(t, "op")
		m.stage.failWrite(arguments{"op": op})
		if m.out.Truncate != op || m.out.Fault != vsr.FaultNone {
			t.Fatalf("%+v", m.out)
		}
	}
}

func (m *model) undo(t *rapid.T) {
	if low := m.written + 1; low <= uint64(len(m.log)) {
		op := rapid.Uint64Range(low, uint64(len(m.log))).Draw(t, "op")
		m.replica.Rollback(op)
		m.cut(op)
	}
}

func (m *model) kill(*rapid.T) { m.stage.restart(arguments{}) }

// power cuts the power: with the written completion as ack, acknowledged ops above the last sync may go.
func (m *model) power(*rapid.T) {
	m.stage.restart(arguments{"power": 1})
	for op := range m.acked {
		if op > uint64(len(m.log)) && !m.group.Policy.Synced {
			delete(m.acked, op)
		}
	}
}

func (m *model) check(t *rapid.T) {
	r := m.replica
	if h := r.Head(); h.Op != uint64(len(m.log)) || r.Commit() > h.Op || !r.Primary() {
		t.Fatalf("head %d commit %d, log of %d", h.Op, r.Commit(), len(m.log))
	}
	parent, last := wire.U128{}, uint64(0)
	for i := range m.log {
		h := &m.log[i]
		switch {
		case h.Verify() != nil:
			t.Fatalf("op %d is not sealed", h.Op)
		case h.Op != uint64(i)+1 || h.Group != m.group.ID || h.Cluster != m.group.Cluster:
			t.Fatalf("entry %d: %+v", i, h)
		case h.Parent != parent || h.Timestamp <= last || h.Commit >= h.Op:
			t.Fatalf("entry %d: chain, time or commit: %+v", i, h)
		}
		parent, last = h.Checksum, h.Timestamp
	}
	for op, id := range m.acked {
		if op > uint64(len(m.log)) || m.log[op-1].Checksum != id {
			t.Fatalf("acknowledged op %d is lost or another", op)
		}
	}
}
