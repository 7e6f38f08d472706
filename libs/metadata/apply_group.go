package metadata

import (
	"slices"

	"github.com/whippet-mq/whippet/libs/wire"
)

func (v *View) createGroup(h *wire.PrepareHeader, body []byte) ([]byte, wire.Code) {
	q, err := wire.DecodeCreateGroup(body)
	if err != nil {
		return nil, wire.CodeInvalidCommand
	}
	t, code := v.targetTopic(h, q.Stream, q.Topic, RightReadTopic)
	if code != 0 {
		return nil, code
	}
	name := string(q.Name)
	if _, taken := t.groupNames.Get(name); taken {
		return nil, wire.CodeConsumerGroupNameAlreadyExists
	}
	g := &Group{
		GroupKey: GroupKey{t.Stream, t.ID, t.nextGroupID}, Name: name, partitions: t.Partitions(),
	}
	changed := *t
	changed.groups = t.groups.set(g.Group, g)
	changed.groupNames = t.groupNames.set(name, g.Group)
	changed.nextGroupID++
	v.setTopic(&changed)
	return g.Record().Append(nil), 0
}

// targetGroup resolves a group and tests the right to its topic before the group is looked for.
func (v *View) targetGroup(h *wire.PrepareHeader, stream, topic, group wire.Identifier) (*Group, wire.Code) {
	t, code := v.targetTopic(h, stream, topic, RightReadTopic)
	if code != 0 {
		return nil, code
	}
	g := t.Group(group)
	if g == nil {
		return nil, wire.CodeConsumerGroupIdNotFound
	}
	return g, 0
}

func (v *View) deleteGroup(h *wire.PrepareHeader, body []byte) wire.Code {
	q, err := wire.DecodeGroupTarget(body)
	if err != nil {
		return wire.CodeInvalidCommand
	}
	g, code := v.targetGroup(h, q.Stream, q.Topic, q.Group)
	if code != 0 {
		return code
	}
	v.disband(g)
	changed := *v.TopicByKey(g.TopicKey())
	changed.groups = changed.groups.delete(g.Group)
	changed.groupNames = changed.groupNames.delete(g.Name)
	v.setTopic(&changed)
	v.Revision++
	return 0
}

func (v *View) joinGroup(h *wire.PrepareHeader, body []byte) wire.Code {
	q, err := wire.DecodeLoggedJoinGroup(body)
	if err != nil {
		return wire.CodeInvalidCommand
	}
	g, code := v.targetGroup(h, q.Stream, q.Topic, q.Group)
	if code != 0 {
		return code
	}
	joined := g.join(q.Client, q.InFlight, h.Timestamp)
	if joined == g {
		return 0
	}
	v.setGroup(joined)
	v.noteMembership(q.Client, g.GroupKey)
	return 0
}

func (v *View) leaveGroup(h *wire.PrepareHeader, body []byte) wire.Code {
	q, err := wire.DecodeLoggedLeaveGroup(body)
	if err != nil {
		return wire.CodeInvalidCommand
	}
	g, code := v.targetGroup(h, q.Stream, q.Topic, q.Group)
	if code != 0 {
		return code
	}
	if g.Member(q.Client) == nil {
		return wire.CodeConsumerGroupMemberNotFound
	}
	v.setGroup(g.leave(q.Client))
	v.forgetMembership(q.Client, g.GroupKey)
	return 0
}

// completeRevocation ends a pending move. One that is not pending any more is nothing to do: the
// proposal came late.
func (v *View) completeRevocation(body []byte) wire.Code {
	q, err := wire.DecodeLoggedCompleteRevocation(body)
	if err != nil || q.Group > uint64(^uint32(0)) {
		return wire.CodeInvalidCommand
	}
	t, code := v.Topic(q.Stream, q.Topic)
	if code != 0 {
		return code
	}
	g := t.Group(wire.NumericID(uint32(q.Group)))
	if g == nil {
		return wire.CodeConsumerGroupIdNotFound
	}
	if completed := g.complete(q.Source, q.Partition); completed != nil {
		v.setGroup(completed)
		v.Revision++
	}
	return 0
}

// setGroup puts a changed group in its place.
func (v *View) setGroup(g *Group) {
	changed := *v.TopicByKey(g.TopicKey())
	changed.groups = changed.groups.set(g.Group, g)
	v.setTopic(&changed)
	v.noteRevoking(g)
}

// noteRevoking keeps the index of groups with pending revocations.
func (v *View) noteRevoking(g *Group) {
	if g.revoking() {
		v.revoking = v.revoking.set(g.GroupKey, struct{}{})
	} else {
		v.revoking = v.revoking.delete(g.GroupKey)
	}
}

// disband forgets what points at a group that is deleted.
func (v *View) disband(g *Group) {
	for _, m := range g.Members {
		v.forgetMembership(m.Client, g.GroupKey)
	}
	v.revoking = v.revoking.delete(g.GroupKey)
}

// noteMembership keeps the index of a client's groups; false when k stands in it already.
func (v *View) noteMembership(client wire.U128, k GroupKey) bool {
	keys := v.Memberships(client)
	at, found := slices.BinarySearchFunc(keys, k, compareGroupKeys)
	if !found {
		v.memberships = v.memberships.set(client, slices.Insert(slices.Clone(keys), at, k))
	}
	return !found
}

func (v *View) forgetMembership(client wire.U128, k GroupKey) {
	keys := v.Memberships(client)
	left := slices.DeleteFunc(slices.Clone(keys), func(other GroupKey) bool { return other == k })
	if len(left) == 0 {
		v.memberships = v.memberships.delete(client)
		return
	}
	v.memberships = v.memberships.set(client, left)
}
