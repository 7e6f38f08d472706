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

// Install makes a transferred state the whole of the group: its log begins anew behind head, the last
// prepare the state covers. take gives the state to the machine, whose uncommitted ops were dropped
// before. The core goes on once a checkpoint keeps the state. Called in a turn; it ends the transfer, with
// a failure if take fails or the state is older than the group's own.
func (e *Engine) Install(g *Group, head wire.PrepareHeader, take func() error) {
	if g.gone {
		return
	}
	if head.Op <= g.Applied() || head.Group != g.ID {
		e.Loop.TransferFailed(g)
		return
	}
	first := g.tail.first
	e.Loop.truncate(g, first)
	if take() != nil {
		e.Loop.tell(g, vsr.Input{Kind: vsr.InputWriteFailed, Op: first})
		e.Loop.TransferFailed(g)
		return
	}
	p := g.peers
	g.failed = 0
	g.applied, g.tail.first = head, head.Op+1
	p.installing = true
	if p.logged > head.Op {
		p.stale = head.Op + 1 // until the member has taken on another log: it may have acknowledged them
	}
	p.commit, p.held, p.logged = head.Op, head.Op, head.Op
	p.adopted = nil
	e.Loop.settleSoon(g)
	e.keepInstalled(g)
}

// keepInstalled has a checkpoint keep what was installed.
func (e *Engine) keepInstalled(g *Group) {
	e.insist(func() {
		if !g.gone {
			g.peers.installing = false
			e.Loop.tell(g, vsr.Input{Kind: vsr.InputInstalled, Prepare: g.applied})
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

// insist runs then after a checkpoint that is yet to be captured and succeeds: after one that failed the
// next tick begins another.
func (e *Engine) insist(then func()) {
	e.afterCheckpoint(func(err error) {
		if err != nil {
			e.insisting = append(e.insisting, then)
			return
		}
		then()
	})
}
