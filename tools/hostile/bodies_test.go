package hostile

import (
	"encoding/binary"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
)

// request is one that a server takes.
type request struct {
	op   wire.Operation
	code wire.Cmd
	body []byte
}

func (q request) String() string {
	if q.op == wire.OpNonReplicated {
		return q.code.String()
	}
	return q.op.String()
}

// requests are one of every operation and every read with a body. What they change is not what the
// good clients use.
func requests() []request {
	victim, inner, group := wire.NamedID("victim"), wire.NamedID("inner"), wire.NamedID("g")
	target := wire.OffsetTarget{
		Consumer: wire.Consumer{Kind: wire.ConsumerGroup, ID: group}, Stream: victim, Topic: inner, Partition: wire.SelectPartition(0),
	}
	var options wire.Options
	options = wire.AppendOption(options, "segment_size", wire.KindString, []byte("1 MiB"))
	permissions := wire.Permissions{}.Append(nil)
	write := func(op wire.Operation, body interface{ Append([]byte) []byte }) request {
		return request{op: op, body: body.Append(nil)}
	}
	read := func(code wire.Cmd, body interface{ Append([]byte) []byte }) request {
		return request{op: wire.OpNonReplicated, code: code, body: body.Append(nil)}
	}
	inTopic := wire.TopicTarget{Stream: victim, Topic: inner}
	inGroup := wire.GroupTarget{Stream: victim, Topic: inner, Group: group}
	user := wire.UserTarget{User: wire.NamedID("nobody")}
	return []request{
		write(wire.OpCreateStream, wire.CreateStreamRequest{Name: []byte("victim")}),
		write(wire.OpCreateTopic, wire.CreateTopicRequest{Stream: victim, Name: []byte("inner"), PartitionsCount: 2, Options: options}),
		write(wire.OpUpdateStream, wire.UpdateStreamRequest{Stream: victim, Name: []byte("victim")}),
		write(wire.OpUpdateTopic, wire.UpdateTopicRequest{Stream: victim, Topic: inner, Name: []byte("inner")}),
		write(wire.OpCreateGroup, wire.CreateGroupRequest{Stream: victim, Topic: inner, Name: []byte("g")}),
		write(wire.OpJoinGroup, inGroup),
		write(wire.OpCreatePartitions, wire.PartitionsRequest{Stream: victim, Topic: inner, Count: 1}),
		write(wire.OpDeletePartitions, wire.PartitionsRequest{Stream: victim, Topic: inner, Count: 1}),
		write(wire.OpDeleteSegments, wire.DeleteSegmentsRequest{Stream: victim, Topic: inner, Partition: 0, Count: 1}),
		{op: wire.OpSendMessages, body: append(wire.SendMessagesRequest{
			Stream: victim, Topic: inner, Partitioning: partition(0), MessagesCount: 1,
		}.AppendRouting(nil), sealed([]byte("payload"))...)},
		write(wire.OpStoreOffset, wire.StoreOffsetRequest{OffsetTarget: target}),
		write(wire.OpDeleteOffset, wire.DeleteOffsetRequest{OffsetTarget: target}),
		write(wire.OpPurgeTopic, inTopic),
		write(wire.OpPurgeStream, wire.StreamTarget{Stream: victim}),
		write(wire.OpCreateToken, wire.CreateTokenRequest{Name: []byte("ci"), Expiry: 0}),
		write(wire.OpDeleteToken, wire.DeleteTokenRequest{Name: []byte("ci")}),
		write(wire.OpCreateUser, wire.CreateUserRequest{
			Username: []byte("nobody"), Password: []byte("secret"), Status: wire.UserActive, Permissions: permissions,
		}),
		write(wire.OpUpdateUser, wire.UpdateUserRequest{User: user.User, Username: []byte("nobody")}),
		write(wire.OpUpdatePermissions, wire.UpdatePermissionsRequest{User: user.User, Permissions: permissions}),
		write(wire.OpChangePassword, wire.ChangePasswordRequest{User: user.User, Current: []byte("secret"), New: []byte("terces")}),
		write(wire.OpDeleteUser, user),
		read(wire.CmdGetStream, wire.StreamTarget{Stream: victim}),
		read(wire.CmdGetTopics, wire.StreamTarget{Stream: victim}),
		read(wire.CmdGetTopic, inTopic),
		read(wire.CmdGetGroups, inTopic),
		read(wire.CmdGetGroup, inGroup),
		read(wire.CmdSyncGroup, inGroup),
		read(wire.CmdGetUser, user),
		read(wire.CmdGetClient, wire.GetClientRequest{ClientID: 1}),
		read(wire.CmdGetOffset, target),
		read(wire.CmdDescribeOptions, wire.DescribeOptionsRequest{Scope: 1}),
		read(wire.CmdPollMessages, wire.PollMessagesRequest{
			Consumer: target.Consumer, Stream: victim, Topic: inner, Partition: target.Partition, Count: 10, AutoCommit: true,
		}),
		read(wire.CmdFlushBuffer, wire.FlushRequest{Stream: victim, Topic: inner}),
		write(wire.OpLeaveGroup, inGroup),
		write(wire.OpDeleteGroup, inGroup),
		write(wire.OpDeleteTopic, inTopic),
		write(wire.OpDeleteStream, wire.StreamTarget{Stream: victim}),
		{op: wire.OpRegister, body: loginBody("nobody", "wrong")},
	}
}

// TestUndecodableBodies sends every request cut at each byte, with each byte changed and with more
// behind it: every one is answered, and neither the server nor its next start is harmed by any.
func TestUndecodableBodies(t *testing.T) {
	s := start(t, nil)
	crowd := gather(t, s)
	count := 0
	for _, q := range requests() {
		r := s.authenticated()
		ask := func(body []byte) {
			count++
			answer := r.answered(q.String(), r.ask(q.op, q.code, body))
			r.request++
			if wire.Command(answer[60]) == wire.CommandEviction && q.op != wire.OpRegister {
				r.Close()
				r = s.authenticated()
			}
		}
		for cut := range q.body {
			ask(q.body[:cut])
		}
		for i := range min(len(q.body), 400) {
			body := append([]byte(nil), q.body...)
			body[i] = 0xFF
			ask(body)
		}
		ask(append(append([]byte(nil), q.body...), 1, 2, 3))
		r.Close()
	}
	crowd.disperse()
	crowd.lap()
	t.Logf("%d bodies answered", count)
	for _, kill := range []bool{true, false} {
		if err := s.Restart(kill); err != nil {
			t.Fatal(err)
		}
		crowd.verify()
	}
}

// TestReplayedRequests sends every request three times over, byte for byte: the answers to a write
// that is repeated are one answer, and the whole does not happen twice.
func TestReplayedRequests(t *testing.T) {
	s := start(t, nil)
	r := s.authenticated()
	for _, q := range requests() {
		if q.op == wire.OpRegister || q.op == wire.OpDeleteSegments {
			continue
		}
		b := r.ask(q.op, q.code, q.body)
		first := r.answered(q.String(), b)
		if code := status(first); q.op != wire.OpNonReplicated && code != 0 {
			t.Errorf("%s: %v", q, code)
		}
		for range 2 {
			again := r.answered(q.String(), b)
			if q.op == wire.OpCreateToken {
				if code := wire.Code(binary.LittleEndian.Uint32(again[wire.HeaderSize+8:])); code != wire.CodePersonalAccessTokenAlreadyExists {
					t.Errorf("the token was told again, or not: %v", code)
				}
				continue
			}
			if q.op.Metadata() && string(again) != string(first) {
				t.Errorf("%s: the repeat was answered\n%x, the first\n%x", q, again, first)
			}
		}
		r.request++
	}
	c := s.connect()
	if streams, err := c.Streams(); err != nil || len(streams) != 0 {
		t.Errorf("%d streams left, %v", len(streams), err)
	}
	if users, err := c.Users(); err != nil || len(users) != 1 {
		t.Errorf("%d users left, %v", len(users), err)
	}
}
