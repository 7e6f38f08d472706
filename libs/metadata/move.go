package metadata

import "github.com/whippet-mq/whippet/libs/wire"

// Origin is the group that a partition's group succeeded. It is kept for as long as the successor lives: a member
// that comes later than the others must know that its group was not born empty.
type Origin struct {
	Tag     uint16 // incarnation of the sealed group
	Seal    wire.LogSeal
	Settled bool // enough members of the successor have begun: nobody needs the sealed group any more
	members string
}

// Members are the node ids of the sealed group, in member order.
func (o *Origin) Members() []byte { return []byte(o.members) }

// Target is the member list of the successor that the partition is to have, empty when it stays where it is.
func (p *Partition) Target() []byte { return []byte(p.target) }

// Moving reports whether a move of the partition is under way.
func (p *Partition) Moving() bool { return p.target != "" }

// Settled reports whether nothing is left to do for the last move of the partition.
func (p *Partition) Settled() bool { return p.Origin == nil || p.Origin.Settled }

// OriginID is the id of the group that this one succeeded; ok is false when it was born empty.
func (t *Topic) OriginID(p *Partition) (id uint64, ok bool) {
	if p.Origin == nil {
		return 0, false
	}
	return wire.GroupID(t.Stream, t.ID, p.ID, p.Origin.Tag), true
}

// Successor returns the partition whose group directly succeeded the group id.
func (v *View) Successor(id uint64) (*Topic, Partition, bool) {
	stream, topic, partition, tag := wire.SplitGroupID(id)
	t := v.TopicByKey(TopicKey{stream, topic})
	if t == nil {
		return nil, Partition{}, false
	}
	p, ok := t.Partition(partition)
	if !ok || p.Origin == nil || p.Origin.Tag != tag {
		return nil, Partition{}, false
	}
	return t, p, true
}

// movePartition starts a move, gives one up, completes one, or notes that it is beyond recall. The group must be the partition's own of now: a
// request that comes late or twice finds another one and changes nothing.
func (v *View) movePartition(body []byte) wire.Code {
	q, err := wire.DecodeMove(body)
	if err != nil {
		return wire.CodeInvalidCommand
	}
	t, p, ok := v.PartitionByGroupID(q.Group)
	if !ok {
		return wire.CodeResourceNotFound
	}
	switch members := string(q.Members); q.Kind {
	case wire.MoveStart:
		if p.Moving() || !p.Settled() || members == p.members || len(members) != len(p.members) {
			return wire.CodeInvalidCommand
		}
		p.target = members
	case wire.MoveCancel:
		if !p.Moving() {
			return wire.CodeResourceNotFound
		}
		p.target = ""
	case wire.MoveSettle:
		if p.Settled() {
			return 0
		}
		origin := *p.Origin
		origin.Settled, p.Origin = true, &origin
	case wire.MoveSucceed:
		v.succeed(t.Key(), &p, members, q.Seal)
	}
	v.Revision++
	changed := *t
	changed.partitions = t.partitions.set(p.ID, p)
	v.setTopic(&changed)
	return 0
}

// succeed makes the successor of a sealed group the partition's group. Whoever the seal names goes on, also when the
// move was given up meanwhile: the sealed group admits nothing any more. A target that is another one stands.
func (v *View) succeed(k TopicKey, p *Partition, members string, seal wire.LogSeal) {
	p.Origin = &Origin{Tag: p.Tag, Seal: seal, members: p.members}
	p.Tag = (p.Tag + 1) & wire.MaxTag
	if p.members = members; p.target == members {
		p.target = ""
	}
	// The count of the slot is never behind a tag in use, so that what comes after a delete is later than all.
	if last, _ := v.deletes.Get(k); laterTag(p.Tag, last) {
		v.deletes = v.deletes.set(k, p.Tag)
	}
}
