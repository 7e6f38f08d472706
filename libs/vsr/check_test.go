package vsr_test

import (
	"fmt"

	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// checker looks at every member after every Step, past the code under test. The numbers are those of
// vsr-behaviour.md §10.3.
type checker struct {
	c         *cluster
	committed map[uint64]wire.U128 // one history
	prepared  map[[2]uint64]wire.U128
	primary   map[uint32]uint8
	acked     []map[uint64]wire.U128 // what each member promised to hold
	loss      bool                   // too few logs were whole at some time: what nobody held may be gone (rule D8)
	last      []vsr.Vote

	fuzzing bool // one member gets frames that no correct peer sends: only tokens and panics are looked at
	fuzzed  uint8
}

func newChecker(c *cluster) checker {
	k := checker{c: c, committed: map[uint64]wire.U128{}, prepared: map[[2]uint64]wire.U128{}, primary: map[uint32]uint8{}}
	for range c.group.Members {
		k.acked = append(k.acked, map[uint64]wire.U128{})
		k.last = append(k.last, vsr.Vote{})
	}
	return k
}

func (k *checker) fail(format string, args ...any) {
	panic(fmt.Sprintf("tick %d: ", k.c.tick) + fmt.Sprintf(format, args...))
}

// stopped forgets what a member promised if its disk may have.
func (k *checker) stopped(i uint8, power bool) {
	k.last[i] = vsr.Vote{}
	if power && !k.c.group.Policy.Synced {
		k.acked[i] = map[uint64]wire.U128{}
	}
	whole := 0
	for _, m := range k.c.members {
		if m.disk.vote.Whole {
			whole++
		}
	}
	k.loss = k.loss || whole < vsr.QuorumsOf(len(k.c.members)).ViewChange
}

func (k *checker) output(i uint8, in *vsr.Input, out *vsr.Output) {
	m := k.c.members[i]
	for j := range out.Append {
		k.token(m, out.Append[j].Body)
	}
	for _, b := range out.Drop {
		k.token(m, b)
	}
	for _, r := range out.Refused {
		if r.Op == 0 {
			k.token(m, r.Body)
		}
	}
	if k.fuzzing {
		return
	}
	for j := range out.Send {
		k.sent(i, &out.Send[j])
	}
	if in.Kind != vsr.InputFrame && out.Fault != vsr.FaultNone {
		k.fail("%d: fault %v from a caller that follows the rules: %+v", i, out.Fault, in)
	}
	if out.Commit != 0 {
		for op := m.replica.Commit(); op > m.applied && op > 0; op-- {
			k.commit(i, op, out)
		}
	}
}

// token ends a body once (rule of the interface).
func (k *checker) token(m *member, b vsr.Body) {
	if !m.tokens[b] {
		k.fail("body %d ended twice or never came", b)
	}
	delete(m.tokens, b)
}

// commit is S1 and S5: one history, never taken back.
func (k *checker) commit(i uint8, op uint64, out *vsr.Output) {
	m := k.c.members[i]
	var h *wire.PrepareHeader
	for j := range out.Append {
		if out.Append[j].Header.Op == op {
			h = &out.Append[j].Header
		}
	}
	if at := op - m.disk.base - 1; h == nil && op > m.disk.base && at < uint64(len(m.log)) {
		h = &m.log[at]
	}
	if h == nil {
		k.fail("%d committed op %d that it does not hold", i, op)
	}
	if want, ok := k.committed[op]; ok && want != h.Checksum && !k.loss {
		k.fail("%d committed another op %d", i, op)
	}
	k.committed[op] = h.Checksum
}

// sent is S9, S10, S11: what a frame says is on stable storage.
func (k *checker) sent(i uint8, s *vsr.Send) {
	m := k.c.members[i]
	view := func(v uint32, logView uint32) {
		if m.disk.vote.View != v || logView != ^uint32(0) && m.disk.vote.LogView != logView {
			k.fail("%d sends %v of view %d, durable is %+v", i, s.Header.Command(), v, m.disk.vote)
		}
	}
	switch s.Header.Command() {
	case wire.CommandPrepareOk:
		var h wire.PrepareOkHeader
		must(h.Decode(s.Header[:]))
		view(h.View, h.View)
		if !m.disk.vote.Whole {
			k.fail("%d acknowledges with a log that it can not vouch for", i)
		}
		at := h.Op - m.disk.base - 1
		if h.Op > m.disk.head() || h.Op > m.disk.base && m.disk.log[at].Checksum != h.PrepareChecksum {
			k.fail("%d acknowledges op %d that it does not hold", i, h.Op)
		}
		for op := m.disk.base + 1; op <= h.Op; op++ {
			k.acked[i][op] = m.disk.log[op-m.disk.base-1].Checksum
		}
	case wire.CommandPrepare:
		var h wire.PrepareHeader
		must(h.Decode(s.Header[:]))
		view(h.View, h.View)
		at := [2]uint64{uint64(h.View), h.Op}
		if id, ok := k.prepared[at]; ok && id != h.Checksum {
			k.fail("two prepares at view %d op %d", h.View, h.Op)
		}
		k.prepared[at] = h.Checksum
	case wire.CommandCommit, wire.CommandStartView:
		p, err := wire.DecodePreamble(s.Header[:])
		must(err)
		view(p.View, p.View)
	case wire.CommandStartViewChange:
		p, err := wire.DecodePreamble(s.Header[:])
		must(err)
		view(p.View, ^uint32(0))
	case wire.CommandDoViewChange:
		var h wire.DoViewChangeHeader
		must(h.Decode(s.Header[:]))
		view(h.View, h.LogView)
		if h.Flags == 0 {
			k.honest(i, &h, s.Suffix)
		}
	}
}

// honest is S11: a vote does not deny what its sender acknowledged.
func (k *checker) honest(i uint8, h *wire.DoViewChangeHeader, suffix []wire.PrepareHeader) {
	for op, id := range k.acked[i] {
		if op <= h.Commit {
			continue
		}
		if op > h.Op {
			// Acknowledged ops that a later view cut are not committed.
			if k.committed[op] == id {
				k.fail("%d denies op %d that it acknowledged and that is committed", i, op)
			}
			continue
		}
		at := h.Op - op
		if h.Nack.Bit(int(min(at, 128))) && k.committed[op] == id {
			k.fail("%d denies op %d that it acknowledged and that is committed", i, op)
		}
		if at < uint64(len(suffix)) && !suffix[at].Blank() && suffix[at].Checksum != id && k.committed[op] == id {
			k.fail("%d shows another op %d than it acknowledged", i, op)
		}
	}
}

// state is S6, S7, S8.
func (k *checker) state(i uint8) {
	if k.fuzzing {
		return
	}
	m := k.c.members[i]
	r := m.replica
	if r.Primary() {
		if !m.disk.vote.Whole {
			k.fail("%d leads with a log that it can not vouch for", i)
		}
		if p, ok := k.primary[r.View()]; ok && p != i {
			k.fail("%d and %d lead view %d", p, i, r.View())
		}
		k.primary[r.View()] = i
	}
	v := vsr.Vote{View: r.View(), LogView: r.LogView()}
	if v.View < k.last[i].View || v.LogView < k.last[i].LogView || v.LogView > v.View {
		k.fail("%d went from %+v to %+v", i, k.last[i], v)
	}
	k.last[i] = v
	h := r.Head()
	if r.Commit() > h.Op || h.Op != m.disk.base+uint64(len(m.log)) {
		k.fail("%d: head %d commit %d, log ends at %d", i, h.Op, r.Commit(), m.disk.base+uint64(len(m.log)))
	}
}

// converged is L3: everybody has the same log and knows it.
func (k *checker) converged() error {
	var head wire.PrepareHeader
	lead := 0
	for i, m := range k.c.members {
		r := m.replica
		h := r.Head()
		if i == 0 {
			head = h
		}
		if h.Checksum != head.Checksum || h.Op != head.Op || r.Commit() != h.Op {
			return fmt.Errorf("member %d: view %d head %d commit %d, member 0 has head %d", i, r.View(), h.Op, r.Commit(), head.Op)
		}
		if r.Primary() {
			lead++
		}
	}
	if lead != 1 {
		return fmt.Errorf("%d primaries", lead)
	}
	return nil
}
