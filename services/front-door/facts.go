package frontdoor

import (
	"encoding/binary"
	"maps"
	"sync"
	"time"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/wire"
)

// facts pulls what only partition replicas know: sizes, counts, offsets. At most one request is under
// way to each of them; whoever comes meanwhile shares the next one, so an answer is never older than its
// request. A replica that stays silent beyond the limit is answered for with the last known facts, and
// does not hold up the others.
type facts struct {
	partitions func(group uint64) link.Service
	// elsewhere is told that a replica does not lead a group it was asked about; nil when there is no other.
	elsewhere func(c *link.Call, service link.Service)
	limit     time.Duration
	// op is how far the own metadata is: a replica answers once it knows as much. Nil: it always does.
	op func() uint64

	mu    sync.Mutex
	asked map[link.Service]*factSource
	known map[uint64]link.Fact // last answers, for replicas that do not answer in time
}

// factSource is a replica that is being asked.
type factSource struct {
	running *factRound // under way
	coming  *factRound // takes ids until running is done, nil: nobody waits
}

// factRound is one request for the facts of several callers.
type factRound struct {
	ids     []uint64
	done    chan struct{} // closed with the answer, or at the limit
	answers map[uint64]link.Fact
	silent  bool
}

func newFacts(partitions func(uint64) link.Service, limit time.Duration) *facts {
	return &facts{
		partitions: partitions, limit: limit, asked: make(map[link.Service]*factSource), known: make(map[uint64]link.Fact),
	}
}

// get returns the facts of the groups in their order, appended to dst. A group nobody knows has the
// zero Fact.
func (f *facts) get(groups []uint64, dst []link.Fact) []link.Fact {
	answers := make(map[uint64]link.Fact, len(groups))
	giveUp, pause := time.Now().Add(f.limit), firstPause
	for rest := f.pull(groups, answers); len(rest) > 0 && time.Now().Before(giveUp); rest = f.pull(rest, answers) {
		time.Sleep(pause) // a link may be about to connect, a group about to have another primary
		pause = min(2*pause, longPause)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.remember(answers)
	for _, id := range groups {
		fact, ok := answers[id]
		if !ok {
			fact = f.known[id]
		}
		dst = append(dst, fact)
	}
	return dst
}

// soon is get for those who had rather have what is known already than wait longer than limit.
func (f *facts) soon(groups []uint64, limit time.Duration) []link.Fact {
	fresh := make(chan []link.Fact, 1)
	go func() { fresh <- f.get(groups, nil) }()
	wait := time.NewTimer(limit)
	defer wait.Stop()
	select {
	case facts := <-fresh:
		return facts
	case <-wait.C:
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	known := make([]link.Fact, len(groups))
	for i, id := range groups {
		known[i] = f.known[id]
	}
	return known
}

// pull asks every replica for its groups at once, with rounds that start after the call. It returns the
// groups that have to be looked for elsewhere.
func (f *facts) pull(groups []uint64, answers map[uint64]link.Fact) (rest []uint64) {
	ids := make(map[link.Service][]uint64)
	for _, id := range groups {
		if s := f.partitions(id); s != nil {
			ids[s] = append(ids[s], id)
		}
	}
	rounds := make(map[link.Service]*factRound, len(ids))
	for service, list := range ids {
		rounds[service] = f.join(service, list)
	}
	for service, round := range rounds {
		<-round.done
		for _, id := range ids[service] {
			if fact, ok := round.answers[id]; ok {
				answers[id] = fact
			} else if f.elsewhere != nil {
				f.lookElsewhere(id, service, round.silent)
				rest = append(rest, id)
			}
		}
	}
	return rest
}

func (f *facts) lookElsewhere(group uint64, service link.Service, silent bool) {
	c := link.NewCall()
	c.Group, c.Status, c.Reason = group, wire.CodeTransientNotAccepted, link.ReasonNotPrimary
	if silent {
		c.Reason = link.ReasonUnreachable
	}
	f.elsewhere(c, service)
}

// join adds ids to the next round of a replica, and starts it when none is under way.
func (f *facts) join(service link.Service, ids []uint64) *factRound {
	f.mu.Lock()
	defer f.mu.Unlock()
	source := f.asked[service]
	if source == nil {
		source = &factSource{running: newFactRound(ids)}
		f.asked[service] = source
		go f.ask(service, source)
		return source.running
	}
	if source.coming == nil {
		source.coming = newFactRound(nil)
	}
	source.coming.ids = append(source.coming.ids, ids...)
	return source.coming
}

func newFactRound(ids []uint64) *factRound {
	return &factRound{ids: append([]uint64(nil), ids...), done: make(chan struct{}), answers: make(map[uint64]link.Fact)}
}

// ask runs rounds with a replica as long as somebody waits for one.
func (f *facts) ask(service link.Service, source *factSource) {
	for round := source.running; round != nil; {
		f.run(service, round)
		close(round.done)
		f.mu.Lock()
		round, source.coming = source.coming, nil
		if source.running = round; round == nil {
			delete(f.asked, service)
		}
		f.mu.Unlock()
	}
}

// run asks once. A replica that does not answer within the limit keeps its call.
func (f *facts) run(service link.Service, round *factRound) {
	c := link.NewCall()
	c.Internal, c.Deadline = link.InternalFacts, uint32(f.limit.Milliseconds())
	c.Header.Operation = wire.OpNonReplicated
	for _, id := range round.ids {
		c.Body = binary.LittleEndian.AppendUint64(c.Body, id)
	}
	c.Group = round.ids[0]
	if f.op != nil {
		c.MetadataOp = f.op()
	}
	service.Serve(c)
	timer := time.NewTimer(f.limit)
	defer timer.Stop()
	select {
	case <-c.Done():
		round.silent = c.Status != 0
		round.keep(c)
	case <-timer.C:
		round.silent = true
	}
}

// remember keeps the answers for a time when there are none. Who asked for most of what is known
// replaces it, so deleted partitions do not stay. f.mu is held.
func (f *facts) remember(answers map[uint64]link.Fact) {
	if 4*len(answers) > 3*len(f.known) {
		f.known = answers
		return
	}
	maps.Copy(f.known, answers)
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
