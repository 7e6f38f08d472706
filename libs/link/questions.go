package link

// Questions to the metadata primary, and to members of a group.
const (
	// InternalReadIndex asks how far the log goes; answer = Op. A view that has applied it holds everything
	// that was acknowledged before the question.
	InternalReadIndex Internal = 4
	// InternalClaims: a front-door tells which sessions it holds; body = Claims.
	InternalClaims Internal = 5
	// InternalRegister: a process asks for its place among the nodes; body = wire.Node, answer = the
	// result section and the node id u8.
	InternalRegister Internal = 6
	// InternalAlive: a registered node is up; body = wire.Node as it registered. CodeResourceNotFound: it is not
	// registered so, and has to be again.
	InternalAlive Internal = 7
	// InternalViews asks a member in which views it is; body = group ids (u64 each); answer = {group id u64,
	// view u32} for each of them it hosts.
	InternalViews Internal = 8
	// InternalCopied: a node tells the primary of a partition, and the metadata primary, how far its copy is; body =
	// wire.Copied.
	InternalCopied Internal = 9
	// InternalSucceed: a group is sealed; body = wire.Move, answered when the metadata has its successor, Op says where.
	InternalSucceed Internal = 10
	// InternalBegun asks a member of a group whether what it inherited is durable; answer = 1 if so, else nothing.
	InternalBegun Internal = 11
	// InternalPlacement is an operator's command about where partitions are; body and answer are those of package
	// placement.
	InternalPlacement Internal = 12
)
