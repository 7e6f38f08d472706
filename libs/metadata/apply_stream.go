package metadata

import (
	"cmp"

	"github.com/whippet-mq/whippet/libs/wire"
)

func (v *View) createStream(h *wire.PrepareHeader, body []byte) ([]byte, wire.Code) {
	q, err := wire.DecodeCreateStream(body)
	if err != nil {
		return nil, wire.CodeInvalidCommand
	}
	if !v.Can(h.UserID, RightCreateStream, 0, 0) {
		return nil, wire.CodeUnauthorized
	}
	name := string(q.Name)
	if _, taken := v.streamNames.Get(name); taken {
		return nil, wire.CodeStreamNameAlreadyExists
	}
	id := lowestFree(v.streams)
	switch {
	case id >= wire.MaxStreams:
		return nil, wire.CodeTooManyStreams
	case len(q.Options) > 0:
		return nil, wire.CodeInvalidOptionValue
	}
	s := &Stream{
		ID: id, Name: name, CreatedAt: h.Timestamp,
		topics:     newMap[uint32, *Topic](cmp.Compare[uint32]),
		topicNames: newMap[string, uint32](cmp.Compare[string]),
	}
	v.streams = v.streams.set(id, s)
	v.streamNames = v.streamNames.set(name, id)
	return s.Record().Append(nil), 0
}

func (v *View) updateStream(h *wire.PrepareHeader, body []byte) wire.Code {
	q, err := wire.DecodeUpdateStream(body)
	if err != nil {
		return wire.CodeInvalidCommand
	}
	s, code := v.targetStream(h, q.Stream, RightManageStream)
	if code != 0 {
		return code
	}
	name := string(q.Name)
	if owner, taken := v.streamNames.Get(name); taken && owner != s.ID {
		return wire.CodeStreamNameAlreadyExists
	}
	if len(q.Options) > 0 {
		return wire.CodeInvalidOptionValue
	}
	changed := *s
	changed.Name = name
	v.streams = v.streams.set(s.ID, &changed)
	v.streamNames = v.streamNames.delete(s.Name).set(name, s.ID)
	return 0
}

func (v *View) deleteStream(h *wire.PrepareHeader, body []byte) wire.Code {
	q, err := wire.DecodeStreamTarget(body)
	if err != nil {
		return wire.CodeInvalidCommand
	}
	s, code := v.targetStream(h, q.Stream, RightManageStream)
	if code != 0 {
		return code
	}
	for _, t := range s.topics.All() {
		v.bury(t)
	}
	v.streams = v.streams.delete(s.ID)
	v.streamNames = v.streamNames.delete(s.Name)
	v.Revision++
	return 0
}

func (v *View) purgeStream(h *wire.PrepareHeader, body []byte) wire.Code {
	q, err := wire.DecodeStreamTarget(body)
	if err != nil {
		return wire.CodeInvalidCommand
	}
	s, code := v.targetStream(h, q.Stream, RightManageStream)
	if code != 0 {
		return code
	}
	purged := false
	for _, t := range s.topics.All() {
		if t.partitions.Len() > 0 {
			v.setTopic(t.purge())
			purged = true
		}
	}
	if purged {
		v.Revision++
	}
	return 0
}

// setTopic puts a changed topic in its place.
func (v *View) setTopic(t *Topic) {
	s, _ := v.streams.Get(t.Stream)
	changed := *s
	changed.topics = s.topics.set(t.ID, t)
	v.streams = v.streams.set(s.ID, &changed)
}

// bury forgets what points at a topic that is deleted, and counts the delete of its slot.
func (v *View) bury(t *Topic) {
	for _, g := range t.groups.All() {
		v.disband(g)
	}
	v.countDelete(t.Key())
}

// countDelete makes later partitions of the slot a new incarnation.
func (v *View) countDelete(k TopicKey) {
	n, _ := v.deletes.Get(k)
	v.deletes = v.deletes.set(k, (n+1)&wire.MaxTag)
}
