package frontdoor

import (
	"sync/atomic"
	"time"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/wire"
)

// action is what a session asks of its connection. All but actAnswer are followed by resume.
type action uint8

const (
	actAnswer    action = iota // reply() is ready
	actRoute                   // serve session.call with session.service and wait
	actPause                   // wait session.delay
	actHold                    // wait until the follower has applied session.call.Op
	actPassword                // compute session.job
	actFacts                   // fetch facts of session.groups into session.facts
	actStats                   // read the host's figures into session.host
	actSnapshot                // build session.archive as session.archiveSpec says
	actReadIndex               // take a read-index into the session's certainty
)

// step is a place where a request goes on after the connection did what an action asked for.
type step func(*Session) action

// Session is the protocol state of one client connection: who it is bound to and how far its
// request has come. It decides; it opens nothing, waits for nothing and reads no clock. The
// connection owns it: except for binding, seen and push, only the connection's goroutine may use it.
type Session struct {
	core *Core
	conn pusher
	id   wire.U128 // connection id, never 0; its low half is what clients see
	peer string    // ip:port of the client

	transport wire.Transport
	maxReply  int // largest poll reply frame in bytes the client's transport carries, 0: any

	binding atomic.Pointer[binding]
	seen    atomic.Int64 // time of the last request, unix nanoseconds
	sdk     wire.SDK     // what the client said it is

	retryFor time.Duration // repeats of a refused call
	routes   routes
	writes   uint64 // partition writes numbered so far
	attempts attempts

	// The request in progress.
	now    time.Time
	header wire.RequestHeader
	body   []byte
	framed bool     // the body came in a pooled frame, which a service may take over
	bound  *binding // binding when the request arrived
	view   *metadata.View
	next   step // after the action
	judge  step // after a call that is not repeated
	again  step // prepares the call anew before a repeat
	giveUp time.Time
	full   time.Time // since then every attempt met a partition without room; zero: the last one did not
	asked  []byte    // backing of a request that came without a frame of its own (Local)
	tries  int
	open   bool // an attempt may have been executed
	start  time.Time
	certainty
	boundAt *metadata.View // view in which the binding was looked at

	call    *link.Call
	service link.Service
	purges  uint64 // of the partition that is called, when the call was resolved
	delay   time.Duration
	job     passwordJob
	groups  []uint64
	facts   []link.Fact
	host    hostFigures

	archiveSpec archiveSpec
	archive     []byte
	archiveErr  error

	send    sendState
	pass    pass // of a large send
	login   loginState
	token   string // raw text of a token being created
	leaving totals // what the partitions hold that the request removes
	ordered []byte // body of a metadata request
	logged  []byte // backing of ordered where it is not the client's

	replyHeader wire.ReplyHeader

	out    []byte // reply header and small body
	status wire.Code
	result wire.Code // of a logged operation that was refused when it was executed
	reason wire.EvictionReason
}

// pusher writes a frame that answers no request.
type pusher interface{ write(frame []byte) bool }

func newSession(core *Core, conn pusher, peer string) *Session {
	s := &Session{core: core, conn: conn, peer: peer, transport: wire.TransportTCP, retryFor: core.cfg.RetryFor, call: link.NewCall(), out: make([]byte, wire.HeaderSize, 1024)}
	s.seen.Store(time.Now().UnixNano())
	return s
}

// clientID is the connection's number as GetMe and GetClients show it.
func (s *Session) clientID() uint32 { return uint32(s.id.Lo) }

// idle is how long the connection has sent nothing.
func (s *Session) idle(now time.Time) time.Duration {
	return time.Duration(now.UnixNano() - s.seen.Load())
}

// request starts on a whole frame. frame, when not nil, owns b; the session passes it to a service
// or releases it in release.
func (s *Session) request(now time.Time, b []byte, frame *buffer.Frame) action {
	s.now, s.start = now, now
	s.seen.Store(now.UnixNano())
	s.call.Reset()
	s.call.Frame, s.framed = frame, frame != nil
	s.status, s.result, s.reason, s.tries, s.open = 0, 0, 0, 0, false
	s.giveUp, s.full = now.Add(s.retryFor), time.Time{}
	s.bound, s.view = s.binding.Load(), s.core.deps.Follower.View()
	s.body = b[wire.HeaderSize:]
	if err := s.header.Decode(b); err != nil {
		return s.refused(wire.CodeInvalidCommand)
	}
	if s.header.Validate() != nil {
		return s.refused(wire.CodeInvalidCommand)
	}
	s.certainty = certainty{origin: (*Session).begin}
	if !s.core.fresh() && s.authorizes() {
		return s.doubt(s.unvouched())
	}
	return s.doubt(s.begin())
}

// begin starts on a request whose header is read.
func (s *Session) begin() action {
	s.overtaken()
	if s.header.Operation == wire.OpRegister {
		return s.register()
	}
	if !s.checksumHolds() {
		return s.refused(wire.CodeInvalidFormat)
	}
	switch op := s.header.Operation; {
	case op == wire.OpNonReplicated:
		return s.read()
	case op == wire.OpLogout:
		return s.logout()
	case s.bound == nil:
		return s.evicted(wire.EvictNoSession)
	case s.bound.superseded.Load():
		return s.evicted(wire.EvictSessionTooLow)
	case op.Internal():
		return s.evicted(wire.EvictInvalidRequestOperation)
	case op.Partition():
		return s.partitionWrite()
	}
	return s.metadataWrite()
}

// resume goes on after the connection did what the last action asked for.
func (s *Session) resume(now time.Time) action {
	s.now = now
	return s.doubt(s.next(s))
}

// checksumHolds verifies a request checksum that is present. A body that was not kept cannot be
// judged.
func (s *Session) checksumHolds() bool {
	return int(s.header.Size) != wire.HeaderSize+len(s.body) || s.header.RequestChecksum.IsZero() || s.header.RequestChecksum == wire.Widened(s.body)
}

// authenticated reports whether the connection may act for a user.
func (s *Session) authenticated() bool { return s.bound != nil && !s.bound.superseded.Load() }

// stranger reports whether nobody has logged in on the connection. Strangers get nothing of the
// buffer budget: the part of a frame that exceeds the connection's own buffer is not kept, and what
// the header asks for is answered as for an empty body.
func (s *Session) stranger() bool { return s.binding.Load() == nil }

// then asks for act and goes on with next.
func (s *Session) then(act action, next step) action {
	s.next = next
	return act
}

// refuse prepares the refusal of a frame whose body was not kept.
func (s *Session) refuse(header []byte, code wire.Code) {
	s.call.Reset()
	s.start, s.now = time.Time{}, time.Time{}
	s.bound, s.view = s.binding.Load(), s.core.deps.Follower.View()
	_ = s.header.Decode(header)
	s.refused(code)
}

// release gives back what the request held once its reply has left.
func (s *Session) release() {
	if f := s.call.Frame; f != nil {
		s.call.Frame = nil
		f.Release()
	}
	if f := s.call.OutFrame; f != nil {
		s.call.OutFrame = nil
		f.Release()
	}
	s.core.gate.leave(&s.pass)
	s.body, s.archive, s.view, s.token, s.send.aimed = nil, nil, nil, "", false
	if cap(s.asked) > keptReply {
		s.asked = nil
	}
	if cap(s.out) > keptReply {
		s.out = make([]byte, wire.HeaderSize, 1024)
	}
}

// keptReply is the largest reply buffer in bytes a connection keeps between requests.
const keptReply = 64 << 10

// push sends an eviction outside of any request.
func (s *Session) push(reason wire.EvictionReason) {
	var frame [wire.HeaderSize]byte
	h := wire.EvictionHeader{Cluster: s.core.cfg.ClusterID, Client: s.id, Reason: reason}
	h.Put(frame[:])
	s.conn.write(frame[:])
}
