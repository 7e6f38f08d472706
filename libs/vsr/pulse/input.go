package pulse

import "github.com/whippet-mq/whippet/libs/wire"

// Tick is a point on this machine's monotonic clock in microseconds. The clock goes on while the
// machine sleeps.
type Tick uint64

// Times of the protocol, in microseconds.
const (
	Interval    Tick = 100_000   // between the Pings to one peer
	DeadAfter   Tick = 500_000   // without a Ping: the node is suspected
	StuckAfter  Tick = 2_000_000 // without progress: the loop is suspected
	EchoLimit   Tick = 400_000   // age of the Pings whose echoes count for Serving
	Quiet       Tick = 500_000   // no vote this long after a Ping of the primary, or after the start
	DigestEvery Tick = 5_000_000 // between the digests sent to one peer

	reportFor Tick = 300_000 // how long what a peer says of others counts
	catchUp   Tick = 100_000 // how much later than asked for a Step makes this node one that was paused
)

// Options are fixed for the life of a process.
type Options struct {
	// Header is what every frame of this process says of it: cluster, ids, epoch (not 0), features,
	// build. The pulse fills in command, times, views and counts; the caller adds Wall if it wants to.
	Header  wire.PingHeader
	Started Tick // when the process started
	// Agree is how many other nodes must not hear a suspect either before there is an event, at least
	// 1, which is 0's meaning: the smallest Qv-1 of the groups here. Event.By tells larger groups more.
	Agree   int
	Digests Digests // nil: none are compared
}

// Digests is what the caller knows of its groups. Both methods append one digest per loop of the
// leader, the XOR of Digest over the groups of that loop, to dst; they are called during Step. The
// digests are kept up to date as views change, not computed by a walk.
type Digests interface {
	// Led covers the groups this node leads of which node is a member, by this node's loops.
	Led(dst []uint64, node uint8) []uint64
	// Held covers the groups this node is a member of that node leads in this node's view, by the
	// loops of that node, which are loops many.
	Held(dst []uint64, node uint8, loops int) []uint64
}

// Kind says what happened.
type Kind uint8

const (
	// InputTick: time passed.
	InputTick Kind = iota
	// InputPeers: Peers are the nodes of the mesh from now on, without this one. Without one at the
	// start there are none.
	InputPeers
	// InputPing: a Ping of From arrived: Header and Body.
	InputPing
	// InputUp: a connection to From begins, so what was sent to it before may be lost.
	InputUp
	// InputPong: a Pong of From arrived: Header.
	InputPong
)

// Input is one event. What it points to is only read during the call.
type Input struct {
	Kind     Kind
	Now      Tick
	View     uint32   // this node's view of the metadata group now, 0 without a replica of it
	Follows  bool     // its replica takes part in View: it leads it or follows who does
	Progress []uint64 // per loop here: rounds that went through its journal and back; for InputTick and InputPeers

	From   uint8 // node id proven by the connection
	Header *wire.PingHeader
	Body   *wire.PingBody
	Peers  []uint8
}

// Output is the effects of one Step. The caller owns it and reuses it.
type Output struct {
	Send   []Send
	Events []Event
	Wake   Tick // next InputTick wanted, 0 = none
	Fault  Fault
}

// Send is a Ping or Pong for a peer: Header.Command says which. The slices of Body are valid until the
// next Step.
type Send struct {
	To     uint8
	Header wire.PingHeader
	Body   wire.PingBody
}

// Reset empties o for the next Step.
func (o *Output) Reset() { *o = Output{Send: o.Send[:0], Events: o.Events[:0]} }

// EventKind says what became known.
type EventKind uint8

const (
	// EventAlive: Node is heard, for the first time or again, or others who were not hear it now. It may
	// come without an EventDead before.
	EventAlive EventKind = iota + 1
	// EventDead: this node and those in By do not hear Node, in the life Epoch, 0 if it was never heard.
	// It comes again when By changes.
	EventDead
	// EventLoopAlive and EventLoopDead say the same of one Loop of Node, while the others may be well.
	// What EventDead covers with the same By is not said again.
	EventLoopAlive
	EventLoopDead
	// EventNewEpoch: Node runs as another process than before, of life Epoch: the old one is dead for
	// every group it led, and what was said of its loops is over. An EventAlive follows.
	EventNewEpoch
	// EventMismatch: Node does not hold in the same views what this node leads in its Loop.
	EventMismatch
	// EventView: the metadata view that Node reports became View.
	EventView
)

// Event is one thing that became known of a peer.
type Event struct {
	Kind  EventKind
	Node  uint8
	Loop  uint8
	Epoch uint64
	By    Set
	View  uint32
}

// Fault names a frame that was ignored. The caller counts it.
type Fault uint8

const (
	FaultNone   Fault = iota
	FaultPeer         // of a node that is no peer
	FaultSender       // names another node than its connection proved
	FaultStale        // older than what is known, or of an earlier life
	FaultEcho         // answers a Ping that was not sent
	FaultKind         // unknown input kind
)
