package wire

// Operation says what a request asks for and what a prepare does (replica-wire.md §4).
type Operation uint8

// Operations 64 to 127 are made inside the cluster, 128 to 149 belong to the metadata plane and
// 160 to 162 to the partition plane.
const (
	OpReserved                        Operation = 0
	OpRegister                        Operation = 1
	OpNonReplicated                   Operation = 2
	OpLogout                          Operation = 3
	OpCreateTopicWithAssignments      Operation = 64
	OpCreatePartitionsWithAssignments Operation = 65
	OpRemoveGroupMember               Operation = 66
	OpCompleteRevocation              Operation = 67
	OpTruncatePartition               Operation = 68
	// Native operations stand in Whippet's own logs only; the documented plane does not know them.
	OpSealPartition     Operation = 96 // a partition's log ends here, its group moves
	OpRegisterNode      Operation = 97 // metadata: a node joins the roster or changes
	OpSucceedPartition  Operation = 98 // metadata: a successor group takes over a sealed one
	OpCreateStream      Operation = 128
	OpUpdateStream      Operation = 129
	OpDeleteStream      Operation = 130
	OpPurgeStream       Operation = 131
	OpCreateTopic       Operation = 132
	OpUpdateTopic       Operation = 133
	OpDeleteTopic       Operation = 134
	OpPurgeTopic        Operation = 135
	OpCreatePartitions  Operation = 136
	OpDeletePartitions  Operation = 137
	OpDeleteSegments    Operation = 138
	OpCreateGroup       Operation = 139
	OpDeleteGroup       Operation = 140
	OpCreateUser        Operation = 141
	OpUpdateUser        Operation = 142
	OpDeleteUser        Operation = 143
	OpChangePassword    Operation = 144
	OpUpdatePermissions Operation = 145
	OpCreateToken       Operation = 146
	OpDeleteToken       Operation = 147
	OpJoinGroup         Operation = 148
	OpLeaveGroup        Operation = 149
	OpSendMessages      Operation = 160
	OpStoreOffset       Operation = 161
	OpDeleteOffset      Operation = 162
)

// Known reports whether o is a documented operation, Reserved included.
func (o Operation) Known() bool {
	return o <= OpLogout || o >= OpCreateTopicWithAssignments && o <= OpTruncatePartition ||
		o >= OpCreateStream && o <= OpLeaveGroup || o >= OpSendMessages && o <= OpDeleteOffset
}

// Internal reports whether o is made inside the cluster and refused from clients (64..127).
func (o Operation) Internal() bool { return o >= 64 && o < 128 }

// Native reports whether o is one of Whippet's own operations, never Known.
func (o Operation) Native() bool { return o >= OpSealPartition && o <= OpSucceedPartition }

// Metadata reports whether o can stand in the metadata group's log or is admitted into it.
func (o Operation) Metadata() bool {
	return o == OpRegister || o == OpLogout ||
		o >= OpCreateTopicWithAssignments && o <= OpTruncatePartition ||
		o >= OpCreateStream && o <= OpLeaveGroup && o != OpDeleteSegments
}

// Partition reports whether o is a documented partition-plane operation.
func (o Operation) Partition() bool { return o >= OpSendMessages && o <= OpDeleteOffset }

// String returns the operation's name.
func (o Operation) String() string {
	switch o {
	case OpReserved:
		return "Reserved"
	case OpRegister:
		return "Register"
	case OpNonReplicated:
		return "NonReplicated"
	case OpLogout:
		return "Logout"
	case OpCreateTopicWithAssignments:
		return "CreateTopicWithAssignments"
	case OpCreatePartitionsWithAssignments:
		return "CreatePartitionsWithAssignments"
	case OpRemoveGroupMember:
		return "RemoveConsumerGroupMember"
	case OpCompleteRevocation:
		return "CompleteConsumerGroupRevocation"
	case OpTruncatePartition:
		return "TruncatePartition"
	case OpSealPartition:
		return "SealPartition"
	case OpRegisterNode:
		return "RegisterNode"
	case OpSucceedPartition:
		return "SucceedPartition"
	case OpCreateStream:
		return "CreateStream"
	case OpUpdateStream:
		return "UpdateStream"
	case OpDeleteStream:
		return "DeleteStream"
	case OpPurgeStream:
		return "PurgeStream"
	case OpCreateTopic:
		return "CreateTopic"
	case OpUpdateTopic:
		return "UpdateTopic"
	case OpDeleteTopic:
		return "DeleteTopic"
	case OpPurgeTopic:
		return "PurgeTopic"
	case OpCreatePartitions:
		return "CreatePartitions"
	case OpDeletePartitions:
		return "DeletePartitions"
	case OpDeleteSegments:
		return "DeleteSegments"
	case OpCreateGroup:
		return "CreateConsumerGroup"
	case OpDeleteGroup:
		return "DeleteConsumerGroup"
	case OpCreateUser:
		return "CreateUser"
	case OpUpdateUser:
		return "UpdateUser"
	case OpDeleteUser:
		return "DeleteUser"
	case OpChangePassword:
		return "ChangePassword"
	case OpUpdatePermissions:
		return "UpdatePermissions"
	case OpCreateToken:
		return "CreatePersonalAccessToken"
	case OpDeleteToken:
		return "DeletePersonalAccessToken"
	case OpJoinGroup:
		return "JoinConsumerGroup"
	case OpLeaveGroup:
		return "LeaveConsumerGroup"
	case OpSendMessages:
		return "SendMessages"
	case OpStoreOffset:
		return "StoreConsumerOffset"
	case OpDeleteOffset:
		return "DeleteConsumerOffset"
	}
	return "Unknown"
}
