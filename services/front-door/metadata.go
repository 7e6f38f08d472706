package frontdoor

import (
	"encoding/binary"
	"errors"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/wire"
)

// metadataWrite starts an operation that the metadata group orders. What no log position can change
// is refused first, without using up the request's number. Requests with secrets get their logged
// form here, so that no password and no token leaves the front-door.
func (s *Session) metadataWrite() action {
	if code := s.view.Check(s.header.Operation, s.body, s.bound.user); code != 0 {
		return s.refused(code)
	}
	switch s.header.Operation {
	case wire.OpCreateUser:
		return s.createUser()
	case wire.OpChangePassword:
		return s.changePassword()
	case wire.OpCreateToken:
		return s.createToken()
	case wire.OpDeleteSegments:
		return s.deleteSegments()
	case wire.OpDeletePartitions:
		return s.deletePartitions()
	}
	return s.order(s.body)
}

// order sends a request with the given body to the metadata group.
func (s *Session) order(body []byte) action {
	s.ordered = body
	return s.orderAgain()
}

func (s *Session) orderAgain() action {
	c := s.call
	c.Group = wire.MetadataGroup
	c.MetadataOp = s.view.Op
	c.Header = s.header
	c.Header.Operation = s.orderedAs()
	c.Header.Client, c.Header.Session, c.Header.UserID = s.bound.client, s.bound.session, s.bound.user
	c.Body, c.BodyStart = s.ordered, 0
	return s.route(s.core.metadataService(), (*Session).orderAgain, (*Session).metadataDone)
}

// orderedAs is the operation a request is sent under: DeleteSegments is resolved before.
func (s *Session) orderedAs() wire.Operation {
	if s.header.Operation == wire.OpDeleteSegments {
		return wire.OpTruncatePartition
	}
	return s.header.Operation
}

// metadataDone answers a metadata request. A success is held until this front-door's own view shows
// it, so that the client's next request through here does too.
func (s *Session) metadataDone() action {
	c := s.call
	switch {
	case c.Evict != 0:
		return s.evicted(c.Evict)
	case c.Status == wire.CodeRequestAlreadyApplied || c.Status.IsTransient():
		return s.rejected(c.Status)
	case c.Status != 0:
		return s.refused(c.Status)
	}
	if s.core.deps.Router != nil && (s.header.Operation == wire.OpPurgeTopic || s.header.Operation == wire.OpPurgeStream) {
		return s.then(actHold, (*Session).purged)
	}
	return s.then(actHold, (*Session).metadataReply)
}

// purged answers once those who lead the purged partitions know of it: what is sent after the reply, through
// whatever front-door, stands behind the purge there.
func (s *Session) purged() action {
	s.groups = s.groups[:0]
	if s.header.Operation == wire.OpPurgeTopic {
		q, _ := wire.DecodeTopicTarget(s.body)
		if topic, code := s.view.Topic(q.Stream, q.Topic); code == 0 {
			s.groups = appendTopicGroups(s.groups, topic)
		}
	} else if q, err := wire.DecodeStreamTarget(s.body); err == nil {
		if stream := s.view.Stream(q.Stream); stream != nil {
			s.groups = appendGroups(s.groups, stream)
		}
	}
	if len(s.groups) == 0 {
		return s.metadataReply()
	}
	return s.then(actFacts, (*Session).metadataReply)
}

func (s *Session) metadataReply() action {
	c := s.call
	op := c.ReplyOp
	if op == 0 {
		op = s.orderedAs()
	}
	if c.Op > s.view.Op { // not the repeat of an earlier reply
		s.countRemoved(op)
	}
	if op == wire.OpCreateToken && s.token != "" && succeeded(c.Out) {
		c.Out = wire.AppendRawToken(c.Out, s.token)
	}
	if op == wire.OpCreateTopicWithAssignments && s.sdk.Generation != wire.GenerationSnapshot {
		s.createdFor()
	}
	if _, err := wire.DecodeResult(c.Out); err != nil {
		_ = errors.As(err, &s.result)
	}
	return s.committed(s.bound.client, op, c.Out)
}

// createdFor rewrites the reply of CreateTopic, which is logged as the snapshot generation reads it,
// for a client that knows other option keys.
func (s *Session) createdFor() {
	q, err := wire.DecodeCreateTopic(s.body)
	payload, refused := wire.DecodeResult(s.call.Out)
	if err != nil || refused != nil || len(payload) < 4 {
		return
	}
	view := s.core.deps.Follower.View()
	if topic, code := view.Topic(q.Stream, wire.NumericID(binary.LittleEndian.Uint32(payload))); code == 0 {
		s.call.Out = topic.AppendCreated(wire.AppendSuccess(s.call.Out[:0]), s.sdk.Generation)
	}
}

// succeeded reports whether a result-framed body is the section of success and nothing more.
func succeeded(body []byte) bool {
	payload, err := wire.DecodeResult(body)
	return err == nil && len(payload) == 0
}

// createUser replaces the password by its hash.
func (s *Session) createUser() action {
	q, _ := wire.DecodeCreateUser(s.body)
	return s.hash(q.Password, (*Session).createUserHashed)
}

func (s *Session) createUserHashed() action {
	if s.job.busy {
		return s.rejected(wire.CodeTransientNotAccepted)
	}
	q, _ := wire.DecodeCreateUser(s.body)
	q.Password = []byte(s.job.hash)
	s.logged = q.Append(s.logged[:0])
	return s.order(s.logged)
}

// hash asks for the hash of a new password.
func (s *Session) hash(password []byte, next step) action {
	s.job.phc = ""
	s.job.password = append(s.job.password[:0], password...)
	return s.then(actPassword, next)
}

// changePassword verifies the current password and hashes the new one. A target that does not exist
// or that the caller may not touch is ordered without either: the log says which it is.
func (s *Session) changePassword() action {
	q, _ := wire.DecodeChangePassword(s.body)
	target := s.view.User(q.User)
	if target == nil || target.ID != s.bound.user && !s.can(metadata.RightManageUsers, 0, 0) {
		return s.passwordChange("")
	}
	s.job.user, s.job.phc = target.ID, target.PasswordHash
	s.job.password = append(s.job.password[:0], q.Current...)
	return s.then(actPassword, (*Session).currentVerified)
}

func (s *Session) currentVerified() action {
	switch {
	case s.job.busy:
		return s.rejected(wire.CodeTransientNotAccepted)
	case !s.job.ok:
		return s.passwordChange("")
	}
	q, _ := wire.DecodeChangePassword(s.body)
	return s.hash(q.New, (*Session).newHashed)
}

func (s *Session) newHashed() action {
	if s.job.busy {
		return s.rejected(wire.CodeTransientNotAccepted)
	}
	return s.passwordChange(s.job.hash)
}

// passwordChange orders the change. An empty hash commits the refusal "wrong current password".
func (s *Session) passwordChange(hash string) action {
	q, _ := wire.DecodeChangePassword(s.body)
	s.logged = wire.LoggedChangePassword{User: q.User, Hash: []byte(hash)}.Append(s.logged[:0])
	return s.order(s.logged)
}

// createToken makes the token here and orders only its hash; the raw text goes into the reply.
func (s *Session) createToken() action {
	q, _ := wire.DecodeCreateToken(s.body)
	if user := s.view.UserByID(s.bound.user); user != nil && user.TokenCount() >= s.core.cfg.TokensPerUser {
		return s.refused(wire.CodePersonalAccessTokensLimitReached)
	}
	s.token = newToken()
	s.logged = wire.LoggedCreateToken{
		UserID: s.bound.user, Name: q.Name, Expiry: q.Expiry, Hash: []byte(hashToken([]byte(s.token))),
	}.Append(s.logged[:0])
	return s.order(s.logged)
}

// deleteSegments asks the partition for the offset where its count oldest sealed segments end and
// orders the deletion up to there. A target that does not resolve is ordered with offset 0: the log
// says what is missing.
func (s *Session) deleteSegments() action {
	q, _ := wire.DecodeDeleteSegments(s.body)
	topic, code := s.view.Topic(q.Stream, q.Topic)
	if code != 0 || q.Count == 0 {
		return s.truncate(0)
	}
	p, ok := topic.Partition(q.Partition)
	if !ok {
		return s.truncate(0)
	}
	group := topic.GroupID(&p)
	s.callPartition(group, p.PurgeGeneration, s.view.Op)
	s.call.Internal = link.InternalSealed
	s.logged = appendSealed(s.logged[:0], group, q.Count)
	s.call.Body = s.logged
	return s.route(s.core.partitionService(group), (*Session).deleteSegments, (*Session).segmentsFound)
}

func (s *Session) segmentsFound() action {
	if s.call.Status != 0 {
		return s.rejected(s.call.Status)
	}
	end := decodeSealed(s.call.Out)
	frame := s.call.Frame
	s.call.Reset()
	s.call.Frame = frame
	return s.truncate(end)
}

func (s *Session) truncate(upTo uint64) action {
	q, _ := wire.DecodeDeleteSegments(s.body)
	s.logged = wire.LoggedTruncatePartition{Stream: q.Stream, Topic: q.Topic, Partition: q.Partition, UpToOffset: upTo}.Append(s.logged[:0])
	return s.order(s.logged)
}
