package placement

// Cluster is where everything is, as the metadata primary knows it.
type Cluster struct {
	Nodes      []Node      `json:"nodes"`      // partition replicas, ascending by id
	Partitions []Partition `json:"partitions"` // in stream, topic, partition order
	Op         uint64      `json:"op"`         // of the metadata, at which this was so
}

// Node is a partition replica.
type Node struct {
	ID       int    `json:"id"`
	Zone     string `json:"zone,omitempty"`
	Address  string `json:"address"` // of the service plane
	Alive    bool   `json:"alive"`   // it gave a sign of life in the last seconds
	Draining bool   `json:"draining,omitempty"`
}

// Partition is one partition with the nodes that hold it.
type Partition struct {
	Stream    uint32 `json:"stream"`
	Topic     uint32 `json:"topic"`
	ID        uint32 `json:"partition"`
	Group     uint64 `json:"group"`              // consensus group, incarnation tag included
	Members   []int  `json:"members"`            // the leader of view 0 first
	Target    []int  `json:"target,omitempty"`   // of the move that is under way
	Settling  bool   `json:"settling,omitempty"` // the successor has not begun everywhere it has to
	Copies    []Copy `json:"copies,omitempty"`   // what nodes that join report
	SizeBytes uint64 `json:"-"`                  // known to the partition's primary; whoever plans fills it in
}

// Copy is how far a node is with the state of a partition that moves to it.
type Copy struct {
	Node  int    `json:"node"`
	Bytes uint64 `json:"bytes"`
	Of    uint64 `json:"of"` // 0: not known yet
	Ready bool   `json:"ready"`
}

// Resting reports whether no move of the partition is under way or unfinished.
func (p *Partition) Resting() bool { return len(p.Target) == 0 && !p.Settling }

// Command is what an operator asks the metadata primary for.
type Command struct {
	Do      string `json:"do"` // one of the Do constants
	Group   uint64 `json:"group,omitempty"`
	Members []int  `json:"members,omitempty"` // of DoMove
	Node    int    `json:"node,omitempty"`    // of DoDrain, DoKeep, DoRemove
}

// What a Command can ask for.
const (
	DoStatus = "status" // Answer.Cluster
	DoMove   = "move"   // the partition of Group goes to Members
	DoCancel = "cancel" // it stays, if its group is not sealed yet
	DoDrain  = "drain"  // nothing new is placed on Node
	DoKeep   = "keep"   // new partitions are placed on Node again
	DoRemove = "remove" // Node is forgotten: it holds nothing and is down
)

// Answer is what the primary says. A command that would lose data, or makes no sense, is refused with a reason.
type Answer struct {
	Refused string   `json:"refused,omitempty"`
	Cluster *Cluster `json:"cluster,omitempty"`
}
