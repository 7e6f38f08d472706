package partitionreplica

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
	"sync"

	"github.com/whippet-mq/whippet/libs/wire"
)

// offsetKey names one stored offset: plain consumers by number, consumer groups by group id.
type offsetKey struct {
	kind wire.ConsumerKind
	id   uint32
}

func (a offsetKey) compare(b offsetKey) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id))
}

// offsets is a partition's table of consumer offsets. stored is replicated state, written by the
// loop; ahead holds auto-commits that were promised to a poller and are not in the log yet. Polls
// read both from any goroutine.
type offsets struct {
	mu     sync.RWMutex
	stored map[offsetKey]uint64
	ahead  map[offsetKey]promise
	polled map[uint32]polledMark // consumer group id → what its member has seen, not replicated
	// generation counts purges: an auto-commit planned before a purge is dropped.
	generation uint64
}

// promise is an auto-commit on its way into the log. Of an offset that was proposed, or that the
// consumer's own store or delete will replace, no second op is made: it would come behind what the
// consumer orders meanwhile.
type promise struct {
	offset  uint64
	settled bool
}

// polledMark is the highest offset a consumer group's member was given.
type polledMark struct {
	client wire.U128
	offset uint64
}

// put sets an entry of a map that has no memory before its first one.
func put[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = v
}

// get returns the replicated offset.
func (o *offsets) get(k offsetKey) (uint64, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	v, ok := o.stored[k]
	if a, is := o.ahead[k]; is && (!ok || a.offset > v) {
		return a.offset, true
	}
	return v, ok
}

// has reports whether the replicated table holds k.
func (o *offsets) has(k offsetKey) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	_, ok := o.stored[k]
	return ok
}

// advance promises an auto-commit; it never moves an offset back. It reports whether the log has
// to learn of it.
func (o *offsets) advance(k offsetKey, offset, generation uint64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if generation != o.generation {
		return false
	}
	if v, ok := o.stored[k]; ok && v >= offset {
		return false
	}
	if a, ok := o.ahead[k]; ok && a.offset >= offset {
		return false
	}
	put(&o.ahead, k, promise{offset: offset})
	return true
}

// pending returns the promised auto-commits that have to be proposed, in key order.
func (o *offsets) pending(dst []storedOffset) []storedOffset {
	o.mu.RLock()
	defer o.mu.RUnlock()
	for k, a := range o.ahead {
		if !a.settled {
			dst = append(dst, storedOffset{k, a.offset})
		}
	}
	return inOrder(dst)
}

// settle notes that what was promised to k up to offset is in the log, or is replaced there.
func (o *offsets) settle(k offsetKey, offset uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if a, ok := o.ahead[k]; ok && a.offset <= offset {
		o.ahead[k] = promise{a.offset, true}
	}
}

// unsettle makes every promise pending again, because ops were taken back, and reports whether
// there is any.
func (o *offsets) unsettle() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for k, a := range o.ahead {
		o.ahead[k] = promise{offset: a.offset}
	}
	return len(o.ahead) > 0
}

// resign forgets the promises and what pollers have seen: this process leads no more.
func (o *offsets) resign() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.ahead)
	clear(o.polled)
}

// set applies a store; an auto-commit (raise) only moves forward.
func (o *offsets) set(k offsetKey, offset uint64, raise bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if v, ok := o.stored[k]; !raise || !ok || offset > v {
		put(&o.stored, k, offset)
	}
	if a, ok := o.ahead[k]; ok && (!raise || a.offset <= offset) {
		delete(o.ahead, k)
	}
}

func (o *offsets) remove(k offsetKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.stored, k)
	delete(o.ahead, k)
}

// purge forgets everything; auto-commits of polls that began before are refused from now on.
func (o *offsets) purge(generation uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.stored)
	clear(o.ahead)
	clear(o.polled)
	o.generation = generation
}

// clamp lowers offsets beyond the log's end: a power cut may have taken the tail they point at.
func (o *offsets) clamp(next uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for k, v := range o.stored {
		if v >= next && next > 0 {
			o.stored[k] = next - 1
		} else if next == 0 {
			delete(o.stored, k)
		}
	}
}

// barrier is the lowest replicated offset, which retention must not pass.
func (o *offsets) barrier() (uint64, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	low, ok := uint64(0), false
	for _, v := range o.stored {
		if !ok || v < low {
			low, ok = v, true
		}
	}
	return low, ok
}

// behind visits the replicated offsets with the number of messages between each and next, the end of the log.
func (o *offsets) behind(next uint64, visit func(k offsetKey, messages uint64)) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	for k, v := range o.stored {
		visit(k, next-min(v+1, next))
	}
}

// mark notes what a consumer group's member was given.
func (o *offsets) mark(group uint32, client wire.U128, offset uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if m, ok := o.polled[group]; ok && m.client == client && m.offset >= offset {
		return
	}
	put(&o.polled, group, polledMark{client, offset})
}

// inFlight reports whether client was given messages of the group that are not committed.
func (o *offsets) inFlight(group uint32, client wire.U128) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	m, ok := o.polled[group]
	if !ok || m.client != client {
		return false
	}
	v, ok := o.stored[offsetKey{wire.ConsumerGroup, group}]
	return !ok || v < m.offset
}

// count is the number of stored keys of one kind.
func (o *offsets) count(kind wire.ConsumerKind) int {
	o.mu.RLock()
	defer o.mu.RUnlock()
	n := 0
	for k := range o.stored {
		if k.kind == kind {
			n++
		}
	}
	return n
}

type storedOffset struct {
	key    offsetKey
	offset uint64
}

func sorted(dst []storedOffset, m map[offsetKey]uint64) []storedOffset {
	for k, v := range m {
		dst = append(dst, storedOffset{k, v})
	}
	return inOrder(dst)
}

func inOrder(all []storedOffset) []storedOffset {
	slices.SortFunc(all, func(a, b storedOffset) int { return a.key.compare(b.key) })
	return all
}

// list returns the replicated table in key order.
func (o *offsets) list() []storedOffset {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return sorted(nil, o.stored)
}

const storedOffsetSize = 13

// appendTo encodes the replicated table: count u32, then {kind u8, id u32, offset u64} in key order.
func (o *offsets) appendTo(dst []byte) []byte {
	all := o.list()
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, uint32(len(all)))
	for _, s := range all {
		dst = append(dst, byte(s.key.kind))
		dst = le.AppendUint32(dst, s.key.id)
		dst = le.AppendUint64(dst, s.offset)
	}
	return dst
}

var errShortOffsets = errors.New("partition: offset table is cut short")

// decodeOffsets reads a table from the front of b and returns the rest.
func decodeOffsets(b []byte) (*offsets, []byte, error) {
	if len(b) < 4 {
		return nil, nil, errShortOffsets
	}
	le := binary.LittleEndian
	n := int(le.Uint32(b))
	b = b[4:]
	if n > len(b)/storedOffsetSize {
		return nil, nil, errShortOffsets
	}
	o := &offsets{}
	for range n {
		put(&o.stored, offsetKey{wire.ConsumerKind(b[0]), le.Uint32(b[1:])}, le.Uint64(b[5:]))
		b = b[storedOffsetSize:]
	}
	return o, b, nil
}
