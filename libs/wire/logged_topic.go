package wire

// Assignment is one partition of a logged create. Members are the node ids that hold it, first one
// leading view 0; empty means every node of the roster.
type Assignment struct {
	Partition      uint32 // OpCreateTopicWithAssignments: the id; OpCreatePartitionsWithAssignments: 0, 1, ... behind the topic's highest
	ConsensusGroup uint64 // a counter of the primary; not the group id of any frame
	Members        []byte // node ids, at most 255
}

const assignmentSize = 12

// assignments reads count:u32 and the documented part of each entry.
func (r *reader) assignments() []Assignment {
	count := r.u32()
	if uint64(count)*assignmentSize > uint64(len(r.rest)) {
		r.fail()
	}
	if r.bad || count == 0 {
		return nil
	}
	list := make([]Assignment, count)
	for i := range list {
		list[i].Partition, list[i].ConsensusGroup = r.u32(), r.u64()
	}
	return list
}

// incarnation reads the native tail of a logged create: nothing, tag:u16, or tag:u16 and for each
// assignment count:u8 node:u8[count]. Nothing may follow.
func (r *reader) incarnation(list []Assignment) (tag uint16) {
	if r.bad || len(r.rest) == 0 {
		return 0
	}
	if tag = r.u16(); tag > MaxTag {
		r.fail()
	}
	if len(r.rest) == 0 {
		return tag
	}
	for i := range list {
		list[i].Members = r.take(int(r.u8()))
	}
	if len(r.rest) > 0 {
		r.fail()
	}
	return tag
}

func appendAssignments(dst []byte, list []Assignment) []byte {
	dst = appendU32(dst, uint32(len(list)))
	for _, a := range list {
		dst = appendU64(appendU32(dst, a.Partition), a.ConsensusGroup)
	}
	return dst
}

func appendIncarnation(dst []byte, tag uint16, list []Assignment) []byte {
	placed := false
	for _, a := range list {
		placed = placed || len(a.Members) > 0
	}
	if tag == 0 && !placed {
		return dst
	}
	dst = appendU16(dst, tag)
	if placed {
		for _, a := range list {
			dst = appendStr8(dst, a.Members)
		}
	}
	return dst
}

// MaxTag is the largest incarnation tag; tags count modulo MaxTag+1.
const MaxTag = 1<<11 - 1

// LoggedCreateTopic is the body of OpCreateTopicWithAssignments: the request with canonical options,
// the defaults it left open, and the placement the primary decided. Apply copies, it never computes.
// Tag and members are Whippet's own, behind the documented fields; a first life held by the whole
// roster has the documented bytes exactly.
// Layout: len:u32 {stream · partitions:u32 · name · explicit} · len:u32 derived · count:u32
// {partition:u32 · consensus_group:u64} each · [tag:u16 [{count:u8 · node:u8[count]} each]].
type LoggedCreateTopic struct {
	Stream          Identifier
	PartitionsCount uint32
	Name            []byte
	Explicit        []byte // encoded options the client set
	Derived         []byte // encoded options it left open, with their defaults
	Assignments     []Assignment
	Tag             uint16 // incarnation of the new partitions' group ids, 0..MaxTag
}

// DecodeLoggedCreateTopic decodes b; the native tail must end the body.
func DecodeLoggedCreateTopic(b []byte) (l LoggedCreateTopic, err error) {
	r := reader{rest: b}
	request := reader{rest: r.blk32()}
	l.Stream, l.PartitionsCount, l.Name = request.identifier(), request.u32(), request.name8()
	l.Explicit = request.rest
	l.Derived = r.blk32()
	l.Assignments = r.assignments()
	l.Tag = r.incarnation(l.Assignments)
	if request.bad {
		r.fail()
	}
	return l, r.err()
}

// Append writes l behind dst.
func (l LoggedCreateTopic) Append(dst []byte) []byte {
	dst = appendU32(dst, uint32(l.Stream.Size()+4+1+len(l.Name)+len(l.Explicit)))
	dst = appendU32(l.Stream.Append(dst), l.PartitionsCount)
	dst = append(appendStr8(dst, l.Name), l.Explicit...)
	dst = appendAssignments(appendStr32(dst, l.Derived), l.Assignments)
	return appendIncarnation(dst, l.Tag, l.Assignments)
}

// LoggedCreatePartitions is the body of OpCreatePartitionsWithAssignments.
// Layout: len:u32 {stream · topic · count:u32} · assignments and native tail as in LoggedCreateTopic.
type LoggedCreatePartitions struct {
	Stream, Topic Identifier
	Count         uint32
	Assignments   []Assignment
	Tag           uint16
}

// DecodeLoggedCreatePartitions decodes b; the native tail must end the body.
func DecodeLoggedCreatePartitions(b []byte) (l LoggedCreatePartitions, err error) {
	r := reader{rest: b}
	request := reader{rest: r.blk32()}
	l.Stream, l.Topic, l.Count = request.identifier(), request.identifier(), request.u32()
	l.Assignments = r.assignments()
	l.Tag = r.incarnation(l.Assignments)
	if request.bad {
		r.fail()
	}
	return l, r.err()
}

// Append writes l behind dst.
func (l LoggedCreatePartitions) Append(dst []byte) []byte {
	dst = appendU32(dst, uint32(l.Stream.Size()+l.Topic.Size()+4))
	dst = appendU32(l.Topic.Append(l.Stream.Append(dst)), l.Count)
	return appendIncarnation(appendAssignments(dst, l.Assignments), l.Tag, l.Assignments)
}

// LoggedTruncatePartition is the body of OpTruncatePartition: DeleteSegments resolved to the end
// offset of the last segment to go, 0 when nothing is to be removed.
// Layout: stream · topic · partition:u32 · up_to_offset:u64.
type LoggedTruncatePartition struct {
	Stream, Topic Identifier
	Partition     uint32
	UpToOffset    uint64
}

// DecodeLoggedTruncatePartition decodes b.
func DecodeLoggedTruncatePartition(b []byte) (l LoggedTruncatePartition, err error) {
	r := reader{rest: b}
	l.Stream, l.Topic, l.Partition, l.UpToOffset = r.identifier(), r.identifier(), r.u32(), r.u64()
	return l, r.err()
}

// Append writes l behind dst.
func (l LoggedTruncatePartition) Append(dst []byte) []byte {
	return appendU64(appendU32(l.Topic.Append(l.Stream.Append(dst)), l.Partition), l.UpToOffset)
}
