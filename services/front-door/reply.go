package frontdoor

import (
	"github.com/whippet-mq/whippet/libs/wire"
)

// reply is the frame that answers the request: a slice of the session's own buffer or of the call's
// reply frame, valid until release.
func (s *Session) reply() []byte {
	if s.call.OutFrame != nil && s.status == 0 && s.reason == 0 {
		return s.call.OutFrame.Bytes()
	}
	return s.out
}

// reset is where a handler appends its answer: the reply buffer behind the header's place.
func (s *Session) reset() []byte { return s.out[:wire.HeaderSize] }

// answer completes a read's reply with the body that was appended to reset().
func (s *Session) answer(out []byte) action {
	s.out = out
	s.readHeader(len(out)).Put(s.out)
	return actAnswer
}

// empty is the answer "not found" of most reads, and of a command without a body.
func (s *Session) empty() action { return s.answer(s.reset()) }

// answerFrame completes a read's reply whose body the service left in a frame of its own, behind
// 256 free bytes.
func (s *Session) answerFrame() action {
	frame := s.call.OutFrame.Bytes()
	s.readHeader(len(frame)).Put(frame)
	return actAnswer
}

// readHeader answers an operation 2 (client-wire.md §3.2).
func (s *Session) readHeader(size int) *wire.ReplyHeader {
	h := s.echo(size)
	h.Client, h.Op = s.header.Client, s.header.Session
	return h
}

// refused answers with a status and no body.
func (s *Session) refused(code wire.Code) action {
	s.status = code
	h := s.echo(wire.HeaderSize)
	h.Status = code
	h.Client = s.id
	if s.bound != nil && s.header.Operation == wire.OpNonReplicated {
		h.Client, h.Op = s.header.Client, s.header.Session
	}
	s.out = s.reset()
	h.Put(s.out)
	return actAnswer
}

// rejected answers with a result section of one code: how the metadata plane refuses, committed or
// not.
func (s *Session) rejected(code wire.Code) action {
	s.status = code
	s.out = wire.AppendRejection(s.reset(), code)
	h := s.echo(len(s.out))
	h.Client, h.Op = s.header.Client, s.view.Op
	if h.Operation == wire.OpDeleteSegments {
		h.Operation = wire.OpTruncatePartition // clients read a result section under this number only
	}
	h.Put(s.out)
	return actAnswer
}

// committed answers with the outcome of a logged operation, whose body is in the call.
func (s *Session) committed(client wire.U128, op wire.Operation, body []byte) action {
	s.out = append(s.reset(), body...)
	h := s.echo(len(s.out))
	h.Cluster, h.View, h.Release, h.Replica = s.core.cfg.ClusterID, s.call.View, 0, 0
	h.Client, h.Operation = client, op
	h.Op, h.Commit = s.call.Op, max(s.call.Op, s.call.Commit)
	if s.call.Time != 0 {
		h.Timestamp = s.call.Time
	}
	h.Put(s.out)
	return actAnswer
}

// evicted answers with an eviction. A login's carries the client id of the request, the others the
// connection id.
func (s *Session) evicted(reason wire.EvictionReason) action {
	s.reason = reason
	h := wire.EvictionHeader{Cluster: s.core.cfg.ClusterID, Client: s.id, Reason: reason}
	if s.header.Operation == wire.OpRegister {
		h.Client = s.header.Client
	}
	if reason == wire.EvictIncompatibleProtocol {
		h.VersionMax, h.VersionMin = wire.ProtocolVersion, wire.MinProtocolVersion
	}
	s.out = s.reset()
	h.Put(s.out)
	return actAnswer
}

// echo is a reply header with what comes back from every request. The operation of a request that
// no client could have meant becomes NonReplicated: clients reject numbers they do not know.
func (s *Session) echo(size int) *wire.ReplyHeader {
	q := &s.header
	h := &s.replyHeader
	*h = wire.ReplyHeader{
		Cluster: q.Cluster, Size: uint32(size), View: q.View, Release: q.Release, Replica: q.Replica,
		RequestChecksum: q.RequestChecksum, Timestamp: q.Timestamp, Request: q.Request, Operation: q.Operation,
	}
	if !q.Operation.Known() || q.Operation == wire.OpReserved {
		h.Operation = wire.OpNonReplicated
	}
	if s.bound != nil {
		h.Commit = s.view.Op
	}
	return h
}
