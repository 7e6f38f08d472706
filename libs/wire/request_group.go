package wire

// GroupTarget is the body of get, delete, join, leave and sync group.
type GroupTarget struct{ Stream, Topic, Group Identifier }

// DecodeGroupTarget reads a GroupTarget; bytes behind it are ignored.
func DecodeGroupTarget(b []byte) (GroupTarget, error) {
	r := reader{rest: b}
	t := GroupTarget{Stream: r.identifier(), Topic: r.identifier(), Group: r.identifier()}
	return t, r.err()
}

// Append writes t's wire form behind dst.
func (t GroupTarget) Append(dst []byte) []byte {
	return t.Group.Append(t.Topic.Append(t.Stream.Append(dst)))
}

// CreateGroupRequest makes a consumer group; it does not join it.
type CreateGroupRequest struct {
	Stream, Topic Identifier
	Name          []byte
}

// DecodeCreateGroup reads a CreateGroupRequest; bytes behind it are ignored.
func DecodeCreateGroup(b []byte) (CreateGroupRequest, error) {
	r := reader{rest: b}
	q := CreateGroupRequest{Stream: r.identifier(), Topic: r.identifier(), Name: r.name8()}
	return q, r.err()
}

// Append writes q's wire form behind dst.
func (q CreateGroupRequest) Append(dst []byte) []byte {
	return appendStr8(q.Topic.Append(q.Stream.Append(dst)), q.Name)
}
