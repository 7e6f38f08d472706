package loop

import (
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// transfer hands a wish for another member's state to the host.
func (l *Loop) transfer(g *Group, t vsr.Transfer) {
	if l.Transfer != nil {
		l.Transfer(g, g.peers.nodes[t.From], t.Above)
	}
}

// TransferFailed ends a transfer that brought nothing. Called in a turn.
func (l *Loop) TransferFailed(g *Group) {
	if !g.gone {
		l.tell(g, vsr.Input{Kind: vsr.InputTransferFailed})
	}
}

// installed makes a transferred state the whole of the group: its log begins behind head.
func (l *Loop) installed(g *Group, head *wire.PrepareHeader) {
	p := g.peers
	l.truncate(g, g.tail.first)
	g.applied = *head
	g.tail.first = head.Op + 1
	p.commit, p.held, p.logged = head.Op, head.Op, head.Op
	p.adopted, p.adopting, p.owed = nil, nil, 0
	l.settleSoon(g)
}

// Installed begins to use a state the machine has installed: everything up to head is in it. The log of
// the group begins anew behind head once a checkpoint keeps the state; then the core goes on. Called in a
// turn.
func (e *Engine) Installed(g *Group, head wire.PrepareHeader) {
	if g.gone || head.Op < g.Applied() {
		e.Loop.TransferFailed(g)
		return
	}
	e.Loop.installed(g, &head)
	e.afterCheckpoint(func(err error) {
		switch {
		case g.gone:
		case err != nil:
			e.Installed(g, head)
		default:
			e.Loop.tell(g, vsr.Input{Kind: vsr.InputInstalled, Prepare: head})
		}
	})
}

// afterCheckpoint runs then after a checkpoint that is yet to be captured.
func (e *Engine) afterCheckpoint(then func(error)) {
	if e.checkpointing {
		e.waiting = append(e.waiting, then)
		return
	}
	e.startCheckpoint(then)
}
