package wire

// Role says what a process of a cluster does. One may have both.
type Role uint8

// Roles with an id in a cluster; a front-door has none.
const (
	RoleMetadata  Role = 1 << 0
	RolePartition Role = 1 << 1
)

// NoNode is the id of a process that does not have one yet.
const NoNode uint8 = 255

// NodeChange says what a Node asks for.
type NodeChange uint8

// Changes of a node's place.
const (
	NodeTakes  NodeChange = 0 // it takes its place, or tells a new address
	NodeLeaves NodeChange = 1 // the place is free again
	NodeDrains NodeChange = 2 // nothing new is placed on it
	NodeStays  NodeChange = 3 // new partitions are placed on it again
)

// Node is the body of OpRegisterNode and of the request for it: a process takes its place in the
// cluster, gives it up, or is drained. The request names id NoNode when it has none; the primary chooses the id
// that is logged. Layout: version:u8 = 1, change:u8, uuid:u128, id:u8, role:u8, epoch:u64, zone:str8, replica:str8,
// service:str8.
type Node struct {
	UUID    U128  // of the data directory, never 0
	ID      uint8 // 0..254, or NoNode
	Role    Role  // at least one
	Change  NodeChange
	Epoch   uint64 // of the process: grows with each start
	Zone    []byte // failure zone, may be empty
	Replica []byte // host:port of the replica plane
	Service []byte // host:port of the service plane
}

const nodeVersion = 1

// DecodeNode decodes b, which it must fill. Texts alias b.
func DecodeNode(b []byte) (n Node, err error) {
	r := reader{rest: b}
	version, change := r.u8(), r.u8()
	n.UUID, n.ID, n.Role, n.Epoch = r.u128(), r.u8(), Role(r.u8()), r.u64()
	n.Change = NodeChange(change)
	n.Zone, n.Replica, n.Service = r.str8(), r.str8(), r.str8()
	if version != nodeVersion || n.Change > NodeStays || n.UUID.IsZero() || n.Role == 0 || n.Role > RoleMetadata|RolePartition {
		r.fail()
	}
	return n, r.end()
}

// Append writes n behind dst. Texts are at most 255 bytes.
func (n Node) Append(dst []byte) []byte {
	dst = append(dst, nodeVersion, byte(n.Change))
	dst = appendU64(append(appendU128(dst, n.UUID), n.ID, byte(n.Role)), n.Epoch)
	return appendStr8(appendStr8(appendStr8(dst, n.Zone), n.Replica), n.Service)
}
