package wire

import (
	"cmp"
	"slices"
)

// GlobalRights are a user's rights on everything, one bit each in the order of the blob.
type GlobalRights uint16

// Global rights.
const (
	GlobalManageServers GlobalRights = 1 << iota
	GlobalReadServers
	GlobalManageUsers
	GlobalReadUsers
	GlobalManageStreams
	GlobalReadStreams
	GlobalManageTopics
	GlobalReadTopics
	GlobalPollMessages
	GlobalSendMessages

	GlobalAll GlobalRights = 1<<iota - 1 // what root holds
)

// StreamRights are a user's rights on one stream, one bit each in the order of the blob.
type StreamRights uint8

// Stream rights.
const (
	StreamManage StreamRights = 1 << iota
	StreamRead
	StreamManageTopics
	StreamReadTopics
	StreamPollMessages
	StreamSendMessages
)

// TopicRights are a user's rights on one topic, one bit each in the order of the blob.
type TopicRights uint8

// Topic rights.
const (
	TopicManage TopicRights = 1 << iota
	TopicRead
	TopicPollMessages
	TopicSendMessages
)

// Permissions are a user's rights, streams and their topics in ascending order of id
// (client-wire §11.1).
type Permissions struct {
	Global  GlobalRights
	Streams []StreamPermissions
}

// StreamPermissions are a user's rights on one stream and its topics.
type StreamPermissions struct {
	Stream uint32
	Rights StreamRights
	Topics []TopicPermissions
}

// TopicPermissions are a user's rights on one topic.
type TopicPermissions struct {
	Topic  uint32
	Rights TopicRights
}

const (
	globalFlags = 10
	streamFlags = 6
	topicFlags  = 4
)

// DecodePermissions reads a permission blob, which must fill b: any non-zero byte is a true flag,
// entries come in any order, and of entries with one id the last stands.
func DecodePermissions(b []byte) (Permissions, error) {
	r := reader{rest: b}
	p := Permissions{Global: GlobalRights(r.bits(globalFlags))}
	for more := r.flag(); more; more = r.flag() {
		p.Streams = append(p.Streams, r.streamPermissions())
	}
	p.Streams = ascending(p.Streams, func(s StreamPermissions) uint32 { return s.Stream })
	return p, r.end()
}

func (r *reader) streamPermissions() StreamPermissions {
	s := StreamPermissions{Stream: r.u32(), Rights: StreamRights(r.bits(streamFlags))}
	for more := r.flag(); more; more = r.flag() {
		s.Topics = append(s.Topics, TopicPermissions{Topic: r.u32(), Rights: TopicRights(r.bits(topicFlags))})
	}
	s.Topics = ascending(s.Topics, func(t TopicPermissions) uint32 { return t.Topic })
	return s
}

// bits reads n boolean bytes, the first into bit 0.
func (r *reader) bits(n int) (set uint16) {
	for i, b := range r.take(n) {
		if b != 0 {
			set |= 1 << i
		}
	}
	return set
}

// ascending sorts entries by id and keeps the last of those with one id.
func ascending[T any](entries []T, id func(T) uint32) []T {
	slices.SortStableFunc(entries, func(a, b T) int { return cmp.Compare(id(a), id(b)) })
	kept := entries[:0]
	for _, e := range entries {
		if n := len(kept); n > 0 && id(kept[n-1]) == id(e) {
			kept[n-1] = e
		} else {
			kept = append(kept, e)
		}
	}
	return kept
}

// Append writes p's canonical blob behind dst: flags 0 or 1, entries as they stand in p.
func (p Permissions) Append(dst []byte) []byte {
	dst = appendBits(dst, uint16(p.Global), globalFlags)
	dst = appendFlag(dst, len(p.Streams) > 0)
	for i, s := range p.Streams {
		dst = appendBits(appendU32(dst, s.Stream), uint16(s.Rights), streamFlags)
		dst = appendFlag(dst, len(s.Topics) > 0)
		for j, t := range s.Topics {
			dst = appendBits(appendU32(dst, t.Topic), uint16(t.Rights), topicFlags)
			dst = appendFlag(dst, j < len(s.Topics)-1)
		}
		dst = appendFlag(dst, i < len(p.Streams)-1)
	}
	return dst
}

func appendBits(dst []byte, set uint16, n int) []byte {
	for i := range n {
		dst = append(dst, byte(set>>i&1))
	}
	return dst
}

// checkPermissions walks a blob without building it.
func (r *reader) checkPermissions() {
	r.take(globalFlags)
	for more := r.flag(); more; more = r.flag() {
		r.take(4 + streamFlags)
		for more := r.flag(); more; more = r.flag() {
			r.take(4 + topicFlags)
		}
	}
}

// optionalPermissions reads has:u8 and, when it is 1, len:u32 and a valid blob; nil means absent.
func (r *reader) optionalPermissions() []byte {
	if r.u8() != 1 {
		return nil
	}
	blob := r.blk32()
	inner := reader{rest: blob}
	inner.checkPermissions()
	if inner.end() != nil {
		r.fail()
		return nil
	}
	return blob
}

func appendOptionalPermissions(dst, blob []byte) []byte {
	if blob == nil {
		return append(dst, 0)
	}
	return appendStr32(append(dst, 1), blob)
}
