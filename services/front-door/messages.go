package frontdoor

import (
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/wire"
)

// sendState is what a send keeps between repeats: its partition and that its batch was verified.
type sendState struct {
	request   wire.SendMessagesRequest
	aimed     bool // the partition was chosen before the batch was read
	chosen    bool
	verified  bool
	partition uint32
	start     int    // of the batch in the frame
	checksum  uint64 // of the batch as sent
}

// attempt is a send a client may repeat: the same bytes under the same number. The repeat keeps the
// sequence of the first attempt, so the partition recognises it.
type attempt struct {
	request, checksum, sequence uint64
	group                       uint64 // of the partition it went to
}

// attempts are the last sends of a connection that may be repeated. Clients that number their writes
// repeat under the number of the first attempt. Others give consecutive sends one number, so only an
// attempt answered 57, which they repeat at once, counts.
type attempts struct {
	last [8]attempt
	next int
}

func (a *attempts) note(one attempt) {
	a.last[a.next] = one
	a.next = (a.next + 1) % len(a.last)
}

// of is an earlier attempt of the same request, nil when there is none.
func (a *attempts) of(request, checksum uint64) *attempt {
	for i := range a.last {
		if o := &a.last[i]; o.sequence != 0 && o.request == request && o.checksum == checksum {
			return o
		}
	}
	return nil
}

// partitionWrite starts one of the three operations of the partition plane.
func (s *Session) partitionWrite() action {
	s.number()
	switch s.header.Operation {
	case wire.OpSendMessages:
		return s.sendMessages()
	case wire.OpStoreOffset:
		return s.storeOffset()
	default:
		return s.deleteOffset()
	}
}

// sendMessages resolves the target, verifies the batch on the connection's own goroutine and hands
// it to the partition. The order of checks is that of client-semantics.md §4.1.
func (s *Session) sendMessages() action {
	s.send.chosen, s.send.verified = s.send.aimed, false
	var err error
	if s.send.request, err = wire.DecodeSendMessages(s.body); err != nil {
		return s.refused(wire.CodeResourceNotFound)
	}
	return s.sendRouted()
}

// sendRouted prepares the call on the session's view; a repeat starts here.
func (s *Session) sendRouted() action {
	q := &s.send.request
	key := s.body[4 : 4+q.Stream.Size()+q.Topic.Size()]
	target := s.resolve(q.Stream, q.Topic, key)
	if target.topic == nil {
		return s.refused(wire.CodeResourceNotFound)
	}
	if !s.send.chosen && !s.choose(target) {
		return s.refused(wire.CodeResourceNotFound)
	}
	part, group, ok := target.partition(s.send.partition)
	if !ok {
		return s.refused(wire.CodeResourceNotFound)
	}
	if !target.maySend {
		return s.refused(wire.CodeUnauthorized)
	}
	if !s.send.verified {
		if code := s.verifyBatch(); code != 0 {
			return s.refused(code)
		}
		s.send.verified = true
		s.repeated(target)
		part, group, _ = target.partition(s.send.partition)
	}
	s.callPartition(group, part.PurgeGeneration, target.since)
	s.call.Body, s.call.BodyStart = q.Batch, s.send.start
	return s.route(s.core.partitionService(group), (*Session).sendRouted, (*Session).sent)
}

// aim finds where a send goes from what stands in front of its batch, and chooses its partition. Nil: that
// is not to be seen there, or there is no such partition.
func (s *Session) aim(front []byte) (service link.Service, group uint64) {
	if wire.Operation(front[operationOffset]) != wire.OpSendMessages {
		return nil, 0
	}
	q, err := wire.DecodeSendMessages(front[wire.HeaderSize:])
	if s.bound = s.binding.Load(); err != nil || !s.authenticated() {
		return nil, 0
	}
	s.view, s.send.request = s.core.deps.Follower.View(), q
	target := s.resolve(q.Stream, q.Topic, front[wire.HeaderSize+4:][:q.Stream.Size()+q.Topic.Size()])
	if target.topic == nil || !target.maySend || !s.choose(target) {
		return nil, 0
	}
	s.send.aimed = true
	_, group, ok := target.partition(s.send.partition)
	if !ok {
		return nil, 0
	}
	return s.core.partitionService(group), group
}

// choose picks the partition the client left to the server.
func (s *Session) choose(target *route) bool {
	n := uint64(target.topic.Partitions())
	if n == 0 {
		return false
	}
	switch p := &s.send.request.Partitioning; p.Kind {
	case wire.PartitioningBalanced:
		s.send.partition = uint32((target.balanced.Add(1) - 1) % n)
	case wire.PartitioningKey:
		s.send.partition = uint32(uint64(wire.NameHash(p.Key)) % n)
	default:
		s.send.partition = p.Partition
	}
	s.send.chosen = true
	return true
}

// verifyBatch checks everything about the batch that the partition would have to: lengths, counts,
// reserved bytes and both kinds of checksum. The reference drops what fails in silence.
func (s *Session) verifyBatch() wire.Code {
	q := &s.send.request
	s.send.start = wire.HeaderSize + len(s.body) - len(q.Batch)
	if err := wire.VerifyBatch(q.Batch); err != nil {
		return asCode(err)
	}
	var batch wire.BatchHeader
	_ = batch.Decode(q.Batch)
	if batch.MessageCount != q.MessagesCount {
		return wire.CodeInvalidCommand
	}
	s.send.checksum = batch.Checksum
	return 0
}

// repeated recognises the repeat of a send: it keeps its number, and where the server chose the
// partition it goes to the one of the first attempt, which alone knows it.
func (s *Session) repeated(target *route) {
	o := s.attempts.of(s.header.Request, s.send.checksum)
	if o == nil {
		return
	}
	s.call.Sequence = o.sequence
	if s.send.request.Partitioning.Kind != wire.PartitioningBalanced {
		return
	}
	_, _, number, _ := wire.SplitGroupID(o.group)
	if _, first, ok := target.partition(number); ok && first == o.group {
		s.send.partition = number
	}
}

// number gives a partition write its own number on this connection.
func (s *Session) number() {
	s.writes++
	s.call.Sequence = s.writes
}

// sent answers a send.
func (s *Session) sent() action {
	if !s.sdk.NumbersWrites {
		s.attempts = attempts{}
	}
	if s.sdk.NumbersWrites || s.call.Status == wire.CodeTransientNotCommitted {
		s.attempts.note(attempt{s.header.Request, s.send.checksum, s.call.Sequence, s.call.Group})
	}
	if s.call.Status != 0 {
		return s.refused(s.call.Status)
	}
	s.shown(confirmedNext(s.call.Out, s.send.request.MessagesCount))
	return s.committed(s.id, wire.OpSendMessages, s.call.Out)
}

// callPartition fills the call for the primary of a partition that was purged so often. It waits until it knows
// the metadata up to op.
func (s *Session) callPartition(group, purges, op uint64) {
	c := s.call
	s.purges = purges
	c.Group = group
	c.MetadataOp = op
	c.Header = s.header
	c.Header.Client, c.Header.Session, c.Header.UserID = s.bound.client, s.bound.session, s.bound.user
	c.Header.Group = group
	c.Connection = wire.U128{Lo: s.id.Lo, Hi: s.core.process}
}

// poll serves PollMessages. The order of checks is that of client-semantics.md §4.3.
func (s *Session) poll() action {
	q, err := wire.DecodePollMessages(s.body)
	if err != nil {
		return s.emptyPoll(0)
	}
	start := 1 + q.Consumer.ID.Size()
	key := s.body[start : start+q.Stream.Size()+q.Topic.Size()]
	target := s.resolve(q.Stream, q.Topic, key)
	if target.topic != nil && !target.mayPoll {
		return s.refused(wire.CodeUnauthorized)
	}
	s.call.ConsumerKind = q.Consumer.Kind
	if q.Consumer.Kind == wire.ConsumerGroup {
		if !q.Partition.Set {
			return s.emptyPoll(0)
		}
		group := pollable(target, &q, s.member())
		if group == nil {
			return s.emptyPoll(wire.PartitionResync)
		}
		s.call.ConsumerID, s.call.Generation = group.GroupKey.Group, group.Generation
	} else {
		s.call.ConsumerID = q.Consumer.OffsetID()
	}
	if target.topic == nil {
		return s.refused(target.miss)
	}
	part, group, ok := target.partition(q.Partition.ID)
	if !ok {
		return s.refused(wire.CodePartitionNotFound)
	}
	s.readPartition(group, part.PurgeGeneration, target.since)
	s.call.Header.Code = wire.CmdPollMessages // on a data connection it has a code of its own
	s.call.Body, s.call.MaxReply = s.body, s.maxReply
	return s.route(s.core.partitionService(group), (*Session).poll, (*Session).polled)
}

// pollable returns the group that q polls for if client may poll its partition now, else nil.
func pollable(target *route, q *wire.PollMessagesRequest, client wire.U128) *metadata.Group {
	if target.topic == nil {
		return nil
	}
	group := target.topic.Group(q.Consumer.ID)
	if group == nil || !group.Pollable(client, q.Partition.ID) {
		return nil
	}
	return group
}

// emptyPoll answers a poll without messages.
func (s *Session) emptyPoll(partition uint32) action {
	return s.answer(wire.PollHeader{Partition: partition}.Append(s.reset()))
}

// polled answers a poll, or a read of a stored offset, which begins like one.
func (s *Session) polled() action {
	switch {
	case s.call.Status != 0:
		return s.refused(s.call.Status)
	case s.call.OutFrame != nil:
		s.shown(polledNext(s.call.OutFrame.Bytes()[wire.HeaderSize:]))
		return s.answerFrame()
	}
	s.shown(polledNext(s.call.Out))
	return s.answer(append(s.reset(), s.call.Out...))
}
