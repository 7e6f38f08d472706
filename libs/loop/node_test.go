package loop

import (
	"encoding/binary"
	"slices"

	"github.com/hashicorp/go-hclog"

	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// spec is how a node hosts a group: the list is rotated, so that leaders are spread.
func (n *node) spec(group uint64) Spec {
	s := Spec{ID: group, Members: uint8(len(n.c.nodes)), Policy: n.c.policy, Lost: n.wiped, Leased: group == n.c.groups[0]}
	for i := range n.c.nodes {
		member := n.c.nodes[(i+int(group))%len(n.c.nodes)]
		s.Nodes = append(s.Nodes, member.id)
		if member == n {
			s.Self = uint8(i)
		}
	}
	if s.Members == 1 {
		s.Nodes = nil
	}
	return s
}

// start opens the node's disk and begins to serve.
func (n *node) start() {
	t := n.c.t
	var err error
	n.fs.SetCapacity(0)
	n.fs.SetFault(nil)
	if n.evidence, err = journal.LoadEvidence(n.fs, "."); err != nil {
		t.Fatal(err)
	}
	owner := [16]byte{n.id}
	if n.votes, _, err = OpenVotes(n.fs, ".", owner, true); err != nil {
		t.Fatal(err)
	}
	n.echoes, n.machines = &Echoes{}, map[uint64]*ledger{}
	n.dead, n.silent, n.heard = map[uint8]bool{}, map[uint8]vsr.Tick{}, map[uint8]int{}
	n.epoch++
	e, rec, err := OpenEngine(EngineOptions{
		FS: n.fs, Dir: "log", Log: hclog.NewNullLogger(), Limits: Limits{Pipeline: 8, Queue: 8}, Stepped: true,
		Owner: journal.Owner{Node: owner}, Suspect: n.evidence.Suspect, Durable: n.evidence.End,
		FileSize: 16 << 10, Budget: 1 << 20, Reserve: 32 << 10,
		Clock: func() uint64 { return uint64(n.c.now) + 1e15 }, Ticks: func() vsr.Tick { return n.c.now }, Random: n.c.rng.Uint64,
		Peers: n, Votes: n.votes, Evidence: n.evidence, Echoes: n.echoes,
		Fatal: func(status int, err error) { n.die(status, err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	n.engine = e
	n.writer = &lazyWriter{Inline: e.writer.(*journal.Inline)}
	e.writer = n.writer
	e.Fresh = func(g *Group, _ error) Machine {
		n.machines[g.ID] = &ledger{n: n, group: g.ID}
		return n.machines[g.ID]
	}
	hosted := map[uint64]bool{}
	for i := range rec.Groups {
		g := &rec.Groups[i]
		m := &ledger{n: n, group: g.Group, broken: n.broken}
		if g.Image != nil {
			m.decode(g.Image.State)
		}
		n.machines[g.Group], hosted[g.Group] = m, true
		e.Host(n.spec(g.Group), m, g)
	}
	for _, id := range n.c.groups {
		if hosted[id] {
			continue
		}
		n.machines[id] = &ledger{n: n, group: id}
		if n.c.policy.Incarnation { // metadata: it may have been there
			e.Host(n.spec(id), n.machines[id], &journal.GroupLog{Group: id})
		} else {
			e.Born(n.spec(id), n.machines[id])
		}
	}
	if err := e.Replay(rec, func(g *Group, err error) { t.Fatalf("node %d group %d: %v", n.id, g.ID, err) }); err != nil {
		t.Fatal(err)
	}
	e.Loop.Transfer = n.fetch
	e.Loop.LostOps = func(_ *Group, ops uint64) { n.c.lost += ops }
	if n.life, err = n.evidence.Begin(n.fs, ".", journal.Identity{Node: owner}); err != nil {
		t.Fatal(err)
	}
	n.up, n.fatal = true, false
	e.Start()
}

// die is the end a process wishes for after a failed sync. It acknowledges nothing any more.
func (n *node) die(status int, err error) {
	if status != 3 {
		n.c.fail("node %d ends with %d: %v", n.id, status, err)
	}
	if !n.fatal {
		n.fatal = true
		n.c.logf("node %d gives up: %v", n.id, err)
		if err := n.life.RaiseSuspect(); err != nil {
			n.c.fail("node %d: %v", n.id, err)
		}
	}
}

// fetch copies the state of another node, some time later.
func (n *node) fetch(g *Group, from uint8, above uint64) {
	e := n.engine
	e.Go(func() error { return nil }, func(error) {
		peer := n.c.node(int(from))
		if !peer.up || n.c.cut[[2]int{int(from), int(n.id)}] {
			e.Loop.TransferFailed(g)
			return
		}
		theirs := peer.engine.Loop.Group(g.ID)
		if theirs.Applied() < above {
			e.Loop.TransferFailed(g)
			return
		}
		n.c.seen.transfers++
		n.c.logf("node %d group %d takes the state of %d at op %d", n.id, g.ID, from, theirs.Applied())
		e.Install(g, theirs.applied, func() error {
			n.machines[g.ID].decode(peer.machines[g.ID].encode())
			return nil
		})
	})
}

// stop ends the process at once; with power the machine too.
func (n *node) stop(power bool) {
	n.c.logf("node %d stops, power %v", n.id, power)
	n.up = false
	if power {
		n.fs.PowerCut()
	} else {
		n.fs.Kill()
	}
	for pair := range n.c.wires {
		if pair[0] == int(n.id) || pair[1] == int(n.id) {
			delete(n.c.wires, pair)
		}
	}
	// Work that was queued in the process goes with it.
	n.engine, n.writer = nil, nil
}

// Send implements Peers.
func (n *node) Send(to uint8, f Frame) bool {
	l := &letter{header: *f.Header, body: slices.Clone(f.Body)}
	if len(f.Body)+wire.HeaderSize != int(binary.LittleEndian.Uint32(f.Header[48:])) {
		n.c.fail("node %d sends a %v of %d bytes whose header says %d", n.id, f.Header.Command(), len(f.Body), binary.LittleEndian.Uint32(f.Header[48:]))
	}
	if f.Header.Command() == wire.CommandPrepareOk {
		g := n.engine.Loop.Group(f.Group)
		if op := binary.LittleEndian.Uint64(f.Header[160:]); op > g.peers.held || g.peers.birth {
			n.c.fail("node %d group %d acknowledges op %d, %d is written", n.id, f.Group, op, g.peers.held)
		}
	}
	pair := [2]int{int(n.id), int(to)}
	if n.c.cut[pair] {
		return false
	}
	n.c.wires[pair] = append(n.c.wires[pair], l)
	return true
}
