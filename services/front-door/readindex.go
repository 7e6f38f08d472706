package frontdoor

import (
	"sync"
	"time"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/wire"
)

// readIndex asks the metadata primary how far its log goes. A view that has applied that op holds
// everything that was acknowledged anywhere before the question. At most one question is under way; whoever
// comes meanwhile shares the next one, so no answer is older than its request.
type readIndex struct {
	core *Core

	mu      sync.Mutex
	running *indexRound
	coming  *indexRound
}

// indexRound is one question for several callers.
type indexRound struct {
	done   chan struct{}
	op     uint64
	status wire.Code
}

// indexLimit is how long, in milliseconds, a primary elsewhere may take to answer.
const indexLimit = 1000

// get returns the op, or the transient status with which the question was refused.
func (x *readIndex) get() (op uint64, status wire.Code) {
	x.mu.Lock()
	if round := x.coming; round != nil {
		x.mu.Unlock()
		<-round.done
		return round.op, round.status
	}
	round := &indexRound{done: make(chan struct{})}
	if before := x.running; before != nil {
		x.coming = round
		x.mu.Unlock()
		<-before.done
		x.mu.Lock()
		x.coming = nil
	}
	x.running = round
	x.mu.Unlock()
	x.ask(round)
	x.mu.Lock()
	if x.running == round {
		x.running = nil
	}
	x.mu.Unlock()
	close(round.done)
	return round.op, round.status
}

func (x *readIndex) ask(round *indexRound) {
	c := link.NewCall()
	c.Internal, c.Deadline = link.InternalReadIndex, indexLimit
	c.Header.Operation = wire.OpNonReplicated
	x.core.askMetadata(c)
	round.op, round.status = c.Op, c.Status
}

// certainty is what a request knows of the view it is answered from.
type certainty struct {
	sure    bool // the view holds everything acknowledged before the request
	decided bool // the answer is a role's, not the view's
	lacks   bool // the answer is an empty one for something that is not there
	origin  step // where to start anew with a newer view

	indexOp     uint64
	indexStatus wire.Code // why there is no index
}

// doubt lets no "no" out that an older view than the newest may have said: it is said again from a view
// that is new enough (design-arguments.md 13).
func (s *Session) doubt(act action) action {
	if act != actAnswer || s.core.index == nil || s.sure || s.decided || !s.negative() {
		return act
	}
	return s.confirm()
}

// negative reports whether the answer denies or misses something that a newer view may have.
func (s *Session) negative() bool {
	switch s.reason {
	case wire.EvictInvalidCredentials, wire.EvictInvalidToken, wire.EvictUserInactive:
		return true
	}
	switch s.status {
	case wire.CodeResourceNotFound, wire.CodeStreamIdNotFound, wire.CodeTopicIdNotFound, wire.CodePartitionNotFound,
		wire.CodeConsumerGroupIdNotFound, wire.CodeUnauthorized, wire.CodePersonalAccessTokensLimitReached:
		return true
	}
	return s.lacks
}

// absent is the empty answer for something that is not in the view.
func (s *Session) absent() action {
	s.lacks = true
	return s.empty()
}

// confirm has the request answered from a view that is new enough.
func (s *Session) confirm() action { return s.then(actReadIndex, (*Session).indexed) }

func (s *Session) indexed() action {
	if s.indexStatus != 0 {
		if !s.now.Before(s.giveUp) || s.core.hurried(s.now) {
			return s.unavailable()
		}
		s.backOff()
		return s.then(actPause, (*Session).confirm)
	}
	s.sure = true
	return s.anew()
}

// anew starts over with the newest view.
func (s *Session) anew() action {
	frame, sequence := s.call.Frame, s.call.Sequence
	s.call.Reset()
	s.call.Frame, s.call.Sequence = frame, sequence
	s.status, s.reason, s.lacks = 0, 0, false
	s.view = s.core.deps.Follower.View()
	return s.origin(s)
}

// takeIndex does a round and waits until the own view is there.
func (s *Server) takeIndex(session *Session) {
	session.indexOp, session.indexStatus = s.core.index.get()
	if session.indexStatus == 0 && !s.core.deps.Follower.Wait(session.indexOp, s.core.cfg.HoldFor) {
		s.core.metrics.lateFollower.Inc()
		session.indexStatus = wire.CodeTransientNotAccepted
	}
}

// settle has decide look at the newest view, and once more at one that is new enough when it says no. False:
// nobody vouches for the view, or says how new it has to be; then nothing is decided.
func (s *Server) settle(decide func(v *metadata.View) bool) bool {
	c := s.core
	if !c.fresh() {
		return false
	}
	if decide(c.deps.Follower.View()) || c.index == nil {
		return true
	}
	for giveUp := time.Now().Add(settleFor); time.Now().Before(giveUp) && !c.stopping.Load(); s.pause(longPause) {
		if op, status := c.index.get(); status == 0 && c.deps.Follower.Wait(op, c.cfg.HoldFor) {
			decide(c.deps.Follower.View())
			return true
		}
	}
	return false
}

// settleFor is how long settle asks for a read-index.
const settleFor = 2 * time.Second

// readsMetadata reports whether a command is answered from the view alone.
func readsMetadata(code wire.Cmd) bool {
	switch code {
	case wire.CmdGetStats, wire.CmdGetMe, wire.CmdGetClient, wire.CmdGetClients, wire.CmdGetUser, wire.CmdGetUsers, wire.CmdGetTokens,
		wire.CmdGetStream, wire.CmdGetStreams, wire.CmdGetTopic, wire.CmdGetTopics, wire.CmdGetGroup, wire.CmdGetGroups, wire.CmdSyncGroup:
		return true
	}
	return false
}
