package frontdoor

import (
	"encoding/binary"
	"maps"
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
	ids     []uint64
	done    chan struct{} // closed with the answer, or at the limit
	answers map[uint64]link.Fact
}

func newFacts(partitions func(uint64) link.Service, limit time.Duration) *facts {
	return &facts{partitions: partitions, limit: limit, known: make(map[uint64]link.Fact)}
}

// get returns the facts of the groups in their order, appended to dst. A group nobody knows has the
// zero Fact.
func (f *facts) get(groups []uint64, dst []link.Fact) []link.Fact {
	if len(groups) == 0 {
		return dst
	}
	round := f.pull(groups)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range groups {
		fact, ok := round.answers[id]
		if !ok {
			fact = f.known[id]
		}
		dst = append(dst, fact)
	}
	return dst
}

// pull waits for a round that started after the call and asked for groups.
func (f *facts) pull(groups []uint64) *factRound {
	f.mu.Lock()
	if round := f.coming; round != nil {
		round.ids = append(round.ids, groups...)
		f.mu.Unlock()
		<-round.done
		return round
	}
	round := &factRound{ids: append([]uint64(nil), groups...), done: make(chan struct{}), answers: make(map[uint64]link.Fact, len(groups))}
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
	f.remember(round)
	f.mu.Unlock()
	close(round.done)
	return round
}

// remember keeps the answers for a time when there are none. A round that asked for most of what is
// known replaces it, so deleted partitions do not stay. f.mu is held.
func (f *facts) remember(round *factRound) {
	if 4*len(round.answers) > 3*len(f.known) {
		f.known = maps.Clone(round.answers)
		return
	}
	maps.Copy(f.known, round.answers)
}

// run asks every service for its groups. Who does not answer within the limit keeps its call.
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
			round.keep(c)
		case <-timer.C:
			return
		}
	}
}

func (r *factRound) keep(c *link.Call) {
	for b := c.Out; ; b = b[link.FactSize:] {
		fact, ok := link.DecodeFact(b)
		if !ok {
			return
		}
		r.answers[fact.Group] = fact
	}
}
