package wire

// LoggedJoinGroup is the body of OpJoinGroup. InFlight are the partitions whose polled data is not
// committed yet, as the primary saw them at admission.
// Layout: stream · topic · group · client:u128 · count:u32 · partition:u32 each.
type LoggedJoinGroup struct {
	Stream, Topic, Group Identifier
	Client               U128
	InFlight             []uint32
}

// DecodeLoggedJoinGroup decodes b.
func DecodeLoggedJoinGroup(b []byte) (l LoggedJoinGroup, err error) {
	r := reader{rest: b}
	l.Stream, l.Topic, l.Group, l.Client = r.identifier(), r.identifier(), r.identifier(), r.u128()
	count := r.u32()
	if uint64(count)*4 > uint64(len(r.rest)) {
		r.fail()
	}
	if !r.bad && count > 0 {
		l.InFlight = make([]uint32, count)
		for i := range l.InFlight {
			l.InFlight[i] = r.u32()
		}
	}
	return l, r.err()
}

// Append writes l behind dst.
func (l LoggedJoinGroup) Append(dst []byte) []byte {
	dst = appendU128(l.Group.Append(l.Topic.Append(l.Stream.Append(dst))), l.Client)
	dst = appendU32(dst, uint32(len(l.InFlight)))
	for _, p := range l.InFlight {
		dst = appendU32(dst, p)
	}
	return dst
}

// LoggedLeaveGroup is the body of OpLeaveGroup. Layout: stream · topic · group · client:u128.
type LoggedLeaveGroup struct {
	Stream, Topic, Group Identifier
	Client               U128
}

// DecodeLoggedLeaveGroup decodes b.
func DecodeLoggedLeaveGroup(b []byte) (l LoggedLeaveGroup, err error) {
	r := reader{rest: b}
	l.Stream, l.Topic, l.Group, l.Client = r.identifier(), r.identifier(), r.identifier(), r.u128()
	return l, r.err()
}

// Append writes l behind dst.
func (l LoggedLeaveGroup) Append(dst []byte) []byte {
	return appendU128(l.Group.Append(l.Topic.Append(l.Stream.Append(dst))), l.Client)
}

// LoggedRemoveMember is the body of OpRemoveGroupMember, which is never proposed on its own: its
// effect is part of applying OpLogout. Layout: client:u128.
type LoggedRemoveMember struct{ Client U128 }

// DecodeLoggedRemoveMember decodes b.
func DecodeLoggedRemoveMember(b []byte) (l LoggedRemoveMember, err error) {
	r := reader{rest: b}
	l.Client = r.u128()
	return l, r.err()
}

// Append writes l behind dst.
func (l LoggedRemoveMember) Append(dst []byte) []byte { return appendU128(dst, l.Client) }

// LoggedCompleteRevocation is the body of OpCompleteRevocation: the source of a pending move has
// committed its data, or ran out of time. Stream and topic are numeric.
// Layout: stream · topic · group:u64 · source:u128 · partition:u32.
type LoggedCompleteRevocation struct {
	Stream, Topic Identifier
	Group         uint64
	Source        U128
	Partition     uint32
}

// DecodeLoggedCompleteRevocation decodes b.
func DecodeLoggedCompleteRevocation(b []byte) (l LoggedCompleteRevocation, err error) {
	r := reader{rest: b}
	l.Stream, l.Topic = r.identifier(), r.identifier()
	l.Group, l.Source, l.Partition = r.u64(), r.u128(), r.u32()
	return l, r.err()
}

// Append writes l behind dst.
func (l LoggedCompleteRevocation) Append(dst []byte) []byte {
	dst = appendU64(l.Topic.Append(l.Stream.Append(dst)), l.Group)
	return appendU32(appendU128(dst, l.Source), l.Partition)
}

// RevocationClient is the client id of the prepare that completes the move of a partition away from
// a member of group; its request number is 2^64-1 (replica-wire.md §5.3).
func RevocationClient(group uint64, partition uint32) U128 {
	return U128{Lo: group<<32 | uint64(partition), Hi: ^uint64(0)}
}
