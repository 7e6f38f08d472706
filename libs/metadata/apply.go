package metadata

import "github.com/whippet-mq/whippet/libs/wire"

// Reply is the outcome of an applied op.
type Reply struct {
	Code wire.Code // 0, or the committed rejection
	Body []byte    // what follows the reply header: result section and payload; empty for Register and Logout
}

// Apply executes a committed prepare of the metadata group and returns the next view. It is a pure
// function of its arguments: every replica and follower gets the same view and the same reply. It
// keeps no reference to h or body. A body that does not decode changes nothing and is answered with
// CodeInvalidCommand; admission never lets one into the log.
//
// The code of a Register is CodeUnauthenticated when another user owns the client id, which clients
// see as an eviction (EvictSessionError).
func (v *View) Apply(h *wire.PrepareHeader, body []byte) (*View, Reply) {
	next := *v
	next.Op, next.Time = h.Op, h.Timestamp
	switch h.Operation {
	case wire.OpRegister:
		return &next, Reply{Code: next.register(h)}
	case wire.OpLogout:
		next.logout(h.Client)
		return &next, Reply{}
	}
	payload, code := next.execute(v.acting(h), body)
	if code != 0 {
		next = *v // a rejected op changes nothing but the client table
		next.Op, next.Time = h.Op, h.Timestamp
	}
	reply := Reply{Code: code}
	if code == 0 {
		reply.Body = append(wire.AppendSuccess(make([]byte, 0, 4+len(payload))), payload...)
	} else {
		reply.Body = wire.AppendRejection(nil, code)
	}
	next.record(h, reply.Body)
	return &next, reply
}

// acting is h, or h without rights if the session's user was deleted: whoever has that id by now is
// somebody else.
func (v *View) acting(h *wire.PrepareHeader) *wire.PrepareHeader {
	if c := v.Client(h.Client); c == nil || !c.orphaned() {
		return h
	}
	orphaned := *h
	orphaned.UserID = noUser
	return &orphaned
}

// execute changes v, which nobody else sees yet. The payload follows a result section of success.
func (v *View) execute(h *wire.PrepareHeader, body []byte) (payload []byte, code wire.Code) {
	switch h.Operation {
	case wire.OpCreateStream:
		return v.createStream(h, body)
	case wire.OpUpdateStream:
		return nil, v.updateStream(h, body)
	case wire.OpDeleteStream:
		return nil, v.deleteStream(h, body)
	case wire.OpPurgeStream:
		return nil, v.purgeStream(h, body)
	case wire.OpCreateTopicWithAssignments:
		return v.createTopic(h, body)
	case wire.OpUpdateTopic:
		return nil, v.updateTopic(h, body)
	case wire.OpDeleteTopic:
		return nil, v.deleteTopic(h, body)
	case wire.OpPurgeTopic:
		return nil, v.purgeTopic(h, body)
	case wire.OpCreatePartitionsWithAssignments:
		return nil, v.createPartitions(h, body)
	case wire.OpDeletePartitions:
		return nil, v.deletePartitions(h, body)
	case wire.OpTruncatePartition:
		return nil, v.truncatePartition(h, body)
	case wire.OpCreateGroup:
		return v.createGroup(h, body)
	case wire.OpDeleteGroup:
		return nil, v.deleteGroup(h, body)
	case wire.OpJoinGroup:
		return nil, v.joinGroup(h, body)
	case wire.OpLeaveGroup:
		return nil, v.leaveGroup(h, body)
	case wire.OpCompleteRevocation:
		return nil, v.completeRevocation(body)
	case wire.OpRegisterNode:
		return v.registerNode(body)
	case wire.OpSucceedPartition:
		return nil, v.movePartition(body)
	case wire.OpCreateUser:
		return v.createUser(h, body)
	case wire.OpUpdateUser:
		return nil, v.updateUser(h, body)
	case wire.OpDeleteUser:
		return nil, v.deleteUser(h, body)
	case wire.OpChangePassword:
		return nil, v.changePassword(h, body)
	case wire.OpUpdatePermissions:
		return nil, v.updatePermissions(h, body)
	case wire.OpCreateToken:
		return nil, v.createToken(h, body)
	case wire.OpDeleteToken:
		return nil, v.deleteToken(h, body)
	}
	return nil, wire.CodeInvalidCommand
}

// targetStream resolves a stream, then tests the right to manage it: who may not learns "not found" all
// the same.
func (v *View) targetStream(h *wire.PrepareHeader, id wire.Identifier, right Right) (*Stream, wire.Code) {
	s := v.Stream(id)
	switch {
	case s == nil:
		return nil, wire.CodeStreamIdNotFound
	case !v.Can(h.UserID, right, s.ID, 0):
		return nil, wire.CodeUnauthorized
	}
	return s, 0
}

// targetTopic resolves a topic, then tests the right.
func (v *View) targetTopic(h *wire.PrepareHeader, stream, topic wire.Identifier, right Right) (*Topic, wire.Code) {
	t, code := v.Topic(stream, topic)
	switch {
	case code != 0:
		return nil, code
	case !v.Can(h.UserID, right, t.Stream, t.ID):
		return nil, wire.CodeUnauthorized
	}
	return t, 0
}
