package wire

// GroupRecord is one consumer group in a reply.
// Layout: id:u32 partitions_count:u32 members_count:u32 name:name8 (client-wire §10.4).
type GroupRecord struct {
	ID              uint32
	PartitionsCount uint32 // of the topic
	MembersCount    uint32
	Name            string
}

// Append writes g's wire form behind dst.
func (g GroupRecord) Append(dst []byte) []byte {
	dst = appendU32(appendU32(appendU32(dst, g.ID), g.PartitionsCount), g.MembersCount)
	return appendStr8(dst, g.Name)
}

func (r *reader) groupRecord() GroupRecord {
	return GroupRecord{
		ID: r.u32(), PartitionsCount: r.u32(), MembersCount: r.u32(), Name: string(r.name8()),
	}
}

// DecodeGroups reads records to the end of b.
func DecodeGroups(b []byte) ([]GroupRecord, error) { return decodeAll(b, (*reader).groupRecord) }

// MemberRecord is one member of a group: its slot, and the partitions it owns.
type MemberRecord struct {
	ID         uint32
	Partitions []uint32
}

// Append writes m's wire form behind dst: id:u32 count:u32 partition:u32 × count.
func (m MemberRecord) Append(dst []byte) []byte {
	return appendPartitions(appendU32(dst, m.ID), m.Partitions)
}

func (r *reader) memberRecord() MemberRecord {
	return MemberRecord{ID: r.u32(), Partitions: r.partitions()}
}

// GroupDetails is a group with its members.
type GroupDetails struct {
	GroupRecord
	Members []MemberRecord
}

// Append writes d's wire form behind dst; the record's count must be true.
func (d GroupDetails) Append(dst []byte) []byte {
	return appendAll(d.GroupRecord.Append(dst), d.Members)
}

// DecodeGroupDetails reads a group and its members, which must fill b.
func DecodeGroupDetails(b []byte) (GroupDetails, error) {
	r := reader{rest: b}
	d := GroupDetails{GroupRecord: r.groupRecord()}
	d.Members = repeat(&r, d.MembersCount, (*reader).memberRecord)
	return d, r.end()
}

// GroupAssignment answers sync group: the partitions the caller owns in a generation of the group.
type GroupAssignment struct {
	Generation uint64
	Partitions []uint32
}

// DecodeGroupAssignment reads an GroupAssignment, which must fill b.
func DecodeGroupAssignment(b []byte) (GroupAssignment, error) {
	r := reader{rest: b}
	a := GroupAssignment{Generation: r.u64(), Partitions: r.partitions()}
	return a, r.end()
}

// Append writes a's wire form behind dst: generation:u64 count:u32 partition:u32 × count.
func (a GroupAssignment) Append(dst []byte) []byte {
	return appendPartitions(appendU64(dst, a.Generation), a.Partitions)
}

func (r *reader) partitions() []uint32 { return repeat(r, r.u32(), (*reader).u32) }

func appendPartitions(dst []byte, partitions []uint32) []byte {
	dst = appendU32(dst, uint32(len(partitions)))
	for _, p := range partitions {
		dst = appendU32(dst, p)
	}
	return dst
}
