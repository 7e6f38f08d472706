package frontdoor

import (
	"encoding/binary"
	"sync"
	"time"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/wire"
)

// facts pulls what only partition replicas know: sizes, counts, offsets. At most one request is
// under way; whoever comes meanwhile shares the next one, so an answer is never older than its
// request. A replica that stays silent beyond the limit is answered for with the last known facts.
type facts struct {
	partitions func(group uint64) link.Service
	limit      time.Duration

	mu      sync.Mutex
	running *factRound           // under way
	coming  *factRound           // takes ids until running is done
	known   map[uint64]link.Fact // last answers, for replicas that do not answer in time
}

// factRound is one request for the facts of several callers.
type factRound struct {
	ids  []uint64
	done chan struct{} // closed with the answer, or at the limit
}

func newFacts(partitions func(uint64) link.Service, limit time.Duration) *facts {
	return &facts{partitions: partitions, limit: limit, known: make(map[uint64]link.Fact)}
}

// get returns the facts of the groups in their order, appended to dst. A group nobody knows has the
// zero Fact.
func (f *facts) get(groups []uint64, dst []link.Fact) []link.Fact {
	if len(groups) > 0 {
		f.pull(groups)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range groups {
		dst = append(dst, f.known[id])
	}
	return dst
}

// pull waits for a round that started after the call and asked for groups.
func (f *facts) pull(groups []uint64) {
	f.mu.Lock()
	if round := f.coming; round != nil {
		round.ids = append(round.ids, groups...)
		f.mu.Unlock()
		<-round.done
		return
	}
	round := &factRound{ids: append([]uint64(nil), groups...), done: make(chan struct{})}
	before := f.running
	if before == nil {
		f.running = round
		f.mu.Unlock()
	} else {
		f.coming = round
		f.mu.Unlock()
		<-before.done
		f.mu.Lock()
		f.running, f.coming = round, nil
		f.mu.Unlock()
	}
	f.run(round)
	f.mu.Lock()
	if f.running == round {
		f.running = nil
	}
	f.mu.Unlock()
	close(round.done)
}

// run asks every service for its groups and keeps the answers.
func (f *facts) run(round *factRound) {
	asked := make(map[link.Service][]byte)
	for _, id := range round.ids {
		if s := f.partitions(id); s != nil {
			asked[s] = binary.LittleEndian.AppendUint64(asked[s], id)
		}
	}
	calls := make([]*link.Call, 0, len(asked))
	for service, ids := range asked {
		c := link.NewCall()
		c.Internal = link.InternalFacts
		c.Header.Operation = wire.OpNonReplicated
		c.Body = ids
		c.Group = binary.LittleEndian.Uint64(ids)
		calls = append(calls, c)
		service.Serve(c)
	}
	timer := time.NewTimer(f.limit)
	defer timer.Stop()
	for _, c := range calls {
		select {
		case <-c.Done():
			f.keep(c)
		case <-timer.C:
			return
		}
	}
}

func (f *facts) keep(c *link.Call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.known) > 2*len(c.Body) {
		clear(f.known) // mostly of deleted partitions by now
	}
	for b := c.Out; ; b = b[link.FactSize:] {
		fact, ok := link.DecodeFact(b)
		if !ok {
			return
		}
		f.known[fact.Group] = fact
	}
}
