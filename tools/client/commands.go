package client

import (
	"errors"
	"fmt"

	"github.com/whippet-mq/whippet/libs/wire"
)

// ErrNotFound says that a read found nothing under the name or number asked for.
var ErrNotFound = errors.New("not found")

// request is a command body.
type request interface{ Append(dst []byte) []byte }

// noBody is the body of a command without one.
type noBody struct{}

func (noBody) Append(dst []byte) []byte { return dst }

// get runs a read and decodes what it found; an empty body means nothing was.
func get[T any](c *Client, cmd wire.Cmd, q request, decode func([]byte) (T, error)) (T, error) {
	var none T
	body, err := c.ask(cmd, q)
	if err != nil {
		return none, err
	}
	if len(body) == 0 {
		return none, ErrNotFound
	}
	return decoded(cmd, body, decode)
}

// list runs a read whose empty body is an empty list.
func list[T any](c *Client, cmd wire.Cmd, q request, decode func([]byte) ([]T, error)) ([]T, error) {
	body, err := c.ask(cmd, q)
	if err != nil {
		return nil, err
	}
	return decoded(cmd, body, decode)
}

func decoded[T any](cmd wire.Cmd, body []byte, decode func([]byte) (T, error)) (T, error) {
	out, err := decode(body)
	if err != nil {
		err = fmt.Errorf("%w: reply of %s: %v", ErrProtocol, cmd, err)
	}
	return out, err
}

func (c *Client) ask(cmd wire.Cmd, q request) ([]byte, error) {
	c.begin(q.Append(c.body()))
	return c.read(cmd)
}

// create runs a metadata operation that returns the new object.
func create[T any](c *Client, op wire.Operation, cmd wire.Cmd, q request, decode func([]byte) (T, error)) (T, error) {
	var none T
	c.begin(q.Append(c.body()))
	body, err := c.change(op)
	if err != nil {
		return none, err
	}
	return decoded(cmd, body, decode)
}

func (c *Client) alter(op wire.Operation, q request) error {
	c.begin(q.Append(c.body()))
	_, err := c.change(op)
	return err
}

// Ping checks that the server answers; it needs no login.
func (c *Client) Ping() error {
	_, err := c.ask(wire.CmdPing, noBody{})
	return err
}

// Stats reads the server's statistics.
func (c *Client) Stats() (wire.Stats, error) {
	return get(c, wire.CmdGetStats, noBody{}, wire.DecodeStats)
}

// Cluster reads the roster.
func (c *Client) Cluster() (wire.ClusterMetadata, error) {
	return get(c, wire.CmdGetClusterMetadata, noBody{}, wire.DecodeClusterMetadata)
}

// Snapshot reads a diagnostic archive: ZIP bytes that alias the client's buffer.
func (c *Client) Snapshot(q wire.GetSnapshotRequest) ([]byte, error) {
	return c.ask(wire.CmdGetSnapshot, q)
}

// DescribeOptions reads the catalogue of a scope.
func (c *Client) DescribeOptions(scope wire.OptionScope) ([]wire.OptionRecord, error) {
	return list(c, wire.CmdDescribeOptions, wire.DescribeOptionsRequest{Scope: scope}, wire.DecodeOptionCatalog)
}

// Me reads this connection as the server sees it.
func (c *Client) Me() (wire.ClientDetails, error) {
	return get(c, wire.CmdGetMe, noBody{}, wire.DecodeClientDetails)
}

// GetClient reads one connection of the server.
func (c *Client) GetClient(id uint32) (wire.ClientDetails, error) {
	return get(c, wire.CmdGetClient, wire.GetClientRequest{ClientID: id}, wire.DecodeClientDetails)
}

// Clients lists the server's connections.
func (c *Client) Clients() ([]wire.ClientRecord, error) {
	return list(c, wire.CmdGetClients, noBody{}, wire.DecodeClients)
}

// Streams lists all streams.
func (c *Client) Streams() ([]wire.StreamRecord, error) {
	return list(c, wire.CmdGetStreams, noBody{}, wire.DecodeStreams)
}

// Stream reads a stream and its topics.
func (c *Client) Stream(id wire.Identifier) (wire.StreamDetails, error) {
	return get(c, wire.CmdGetStream, wire.StreamTarget{Stream: id}, wire.DecodeStreamDetails)
}

// CreateStream makes a stream.
func (c *Client) CreateStream(name string) (wire.StreamRecord, error) {
	return create(c, wire.OpCreateStream, wire.CmdCreateStream, wire.CreateStreamRequest{Name: []byte(name)}, wire.DecodeStream)
}

// UpdateStream renames a stream.
func (c *Client) UpdateStream(id wire.Identifier, name string) error {
	return c.alter(wire.OpUpdateStream, wire.UpdateStreamRequest{Stream: id, Name: []byte(name)})
}

// DeleteStream removes a stream and everything in it.
func (c *Client) DeleteStream(id wire.Identifier) error {
	return c.alter(wire.OpDeleteStream, wire.StreamTarget{Stream: id})
}

// PurgeStream removes all messages and stored offsets of a stream.
func (c *Client) PurgeStream(id wire.Identifier) error {
	return c.alter(wire.OpPurgeStream, wire.StreamTarget{Stream: id})
}

// Topics lists a stream's topics.
func (c *Client) Topics(stream wire.Identifier) ([]wire.TopicRecord, error) {
	return list(c, wire.CmdGetTopics, wire.StreamTarget{Stream: stream}, wire.DecodeTopics)
}

// Topic reads a topic and its partitions.
func (c *Client) Topic(stream, topic wire.Identifier) (wire.TopicDetails, error) {
	return get(c, wire.CmdGetTopic, wire.TopicTarget{Stream: stream, Topic: topic}, wire.DecodeTopicDetails)
}

// CreateTopic makes a topic.
func (c *Client) CreateTopic(q wire.CreateTopicRequest) (wire.TopicDetails, error) {
	return create(c, wire.OpCreateTopic, wire.CmdCreateTopic, q, wire.DecodeTopicDetails)
}

// UpdateTopic renames a topic or changes its options.
func (c *Client) UpdateTopic(q wire.UpdateTopicRequest) error { return c.alter(wire.OpUpdateTopic, q) }

// DeleteTopic removes a topic and everything in it.
func (c *Client) DeleteTopic(stream, topic wire.Identifier) error {
	return c.alter(wire.OpDeleteTopic, wire.TopicTarget{Stream: stream, Topic: topic})
}

// PurgeTopic removes all messages and stored offsets of a topic.
func (c *Client) PurgeTopic(stream, topic wire.Identifier) error {
	return c.alter(wire.OpPurgeTopic, wire.TopicTarget{Stream: stream, Topic: topic})
}

// CreatePartitions adds partitions to a topic.
func (c *Client) CreatePartitions(q wire.PartitionsRequest) error {
	return c.alter(wire.OpCreatePartitions, q)
}

// DeletePartitions removes a topic's partitions with the highest ids.
func (c *Client) DeletePartitions(q wire.PartitionsRequest) error {
	return c.alter(wire.OpDeletePartitions, q)
}

// DeleteSegments removes a partition's oldest sealed segments.
func (c *Client) DeleteSegments(q wire.DeleteSegmentsRequest) error {
	return c.alter(wire.OpDeleteSegments, q)
}

// Groups lists a topic's consumer groups.
func (c *Client) Groups(stream, topic wire.Identifier) ([]wire.GroupRecord, error) {
	return list(c, wire.CmdGetGroups, wire.TopicTarget{Stream: stream, Topic: topic}, wire.DecodeGroups)
}

// Group reads a consumer group and its members.
func (c *Client) Group(t wire.GroupTarget) (wire.GroupDetails, error) {
	return get(c, wire.CmdGetGroup, t, wire.DecodeGroupDetails)
}

// CreateGroup makes a consumer group.
func (c *Client) CreateGroup(q wire.CreateGroupRequest) (wire.GroupDetails, error) {
	return create(c, wire.OpCreateGroup, wire.CmdCreateGroup, q, wire.DecodeGroupDetails)
}

// DeleteGroup removes a consumer group.
func (c *Client) DeleteGroup(t wire.GroupTarget) error { return c.alter(wire.OpDeleteGroup, t) }

// JoinGroup makes this session a member of a group.
func (c *Client) JoinGroup(t wire.GroupTarget) error { return c.alter(wire.OpJoinGroup, t) }

// LeaveGroup ends this session's membership.
func (c *Client) LeaveGroup(t wire.GroupTarget) error { return c.alter(wire.OpLeaveGroup, t) }

// SyncGroup reads which partitions this member owns; ErrNotFound when it is no member.
func (c *Client) SyncGroup(t wire.GroupTarget) (wire.GroupAssignment, error) {
	return get(c, wire.CmdSyncGroup, t, wire.DecodeGroupAssignment)
}

// Users lists all users.
func (c *Client) Users() ([]wire.UserRecord, error) {
	return list(c, wire.CmdGetUsers, noBody{}, wire.DecodeUsers)
}

// User reads a user and its permissions.
func (c *Client) User(id wire.Identifier) (wire.UserDetails, error) {
	return get(c, wire.CmdGetUser, wire.UserTarget{User: id}, wire.DecodeUserDetails)
}

// CreateUser makes a user.
func (c *Client) CreateUser(q wire.CreateUserRequest) (wire.UserDetails, error) {
	return create(c, wire.OpCreateUser, wire.CmdCreateUser, q, wire.DecodeUserDetails)
}

// UpdateUser changes a user's name or status.
func (c *Client) UpdateUser(q wire.UpdateUserRequest) error { return c.alter(wire.OpUpdateUser, q) }

// UpdatePermissions replaces a user's permissions.
func (c *Client) UpdatePermissions(q wire.UpdatePermissionsRequest) error {
	return c.alter(wire.OpUpdatePermissions, q)
}

// ChangePassword replaces a user's password.
func (c *Client) ChangePassword(q wire.ChangePasswordRequest) error {
	return c.alter(wire.OpChangePassword, q)
}

// DeleteUser removes a user.
func (c *Client) DeleteUser(id wire.Identifier) error {
	return c.alter(wire.OpDeleteUser, wire.UserTarget{User: id})
}

// Tokens lists this user's personal access tokens.
func (c *Client) Tokens() ([]wire.TokenRecord, error) {
	return list(c, wire.CmdGetTokens, noBody{}, wire.DecodeTokens)
}

// CreateToken makes a personal access token and returns its text, which the server never shows
// again. Expiry is in µs from now, 0 for never.
func (c *Client) CreateToken(name string, expiry uint64) (string, error) {
	q := wire.CreateTokenRequest{Name: []byte(name), Expiry: expiry}
	return create(c, wire.OpCreateToken, wire.CmdCreateToken, q, wire.DecodeRawToken)
}

// DeleteToken removes a personal access token.
func (c *Client) DeleteToken(name string) error {
	return c.alter(wire.OpDeleteToken, wire.DeleteTokenRequest{Name: []byte(name)})
}
