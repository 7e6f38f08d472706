package loop

import (
	"errors"

	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// Bounds of what members that repair their logs get at a time. They ask again for the rest.
const (
	serveBytes  = 8 << 20 // bodies of one answer, at least one
	serveAtOnce = 4       // answers being read for one node
)

// serve answers a member that asked for part of the log: what is in memory at once, what is not after
// it was read.
func (l *Loop) serve(g *Group, s vsr.Serve) {
	node := g.peers.nodes[s.To]
	if s.Low >= g.tail.first {
		l.answer(g, s, s.Low, nil)
		return
	}
	if l.serving[node] >= serveAtOnce {
		return // the member asks again when nothing comes
	}
	l.serving[node]++
	read, top := l.reader(g), min(s.Top, g.Applied())
	part := served{low: s.Low}
	l.env.Go(func() error {
		if first, ok := l.env.First(g.ID); !ok {
			part.low = top + 1
		} else {
			part.low = max(part.low, first)
		}
		part.read(read, top)
		return nil
	}, func(error) {
		l.serving[node]--
		if !g.gone {
			l.answer(g, s, part.low, part.ops)
		}
	})
}

// served is what could be read of a range: without a gap, from low on.
type served struct {
	low uint64
	ops []stored
}

var errEnough = errors.New("loop: enough for one answer")

// read takes ops up to top, as far as an answer goes. What is below an op that can not be read is of no
// use to the member that asked.
func (p *served) read(read func(low, top uint64, visit func(stored) error) error, top uint64) {
	for left := serveBytes; p.low <= top; p.ops = p.ops[:0] {
		err := read(p.low, top, func(o stored) error {
			p.ops = append(p.ops, o)
			if left -= len(o.body); left <= 0 {
				return errEnough
			}
			return nil
		})
		if err == nil || errors.Is(err, errEnough) {
			return
		}
		p.low += uint64(len(p.ops)) + 1
	}
}

// answer sends ops from low on: those that were read, then those of the tail if they continue them.
func (l *Loop) answer(g *Group, s vsr.Serve, low uint64, ops []stored) {
	node := g.peers.nodes[s.To]
	if low > s.Low {
		l.endServe(g, s, node, wire.CommandRangeEvicted, low)
	}
	next, left := low, serveBytes
	for i := range ops {
		if left -= len(ops[i].body); !l.sendRepair(g, s, node, &ops[i].header, Frame{Body: ops[i].body}) {
			break
		}
		next++
	}
	for ; next >= g.tail.first && next <= s.Top && next < g.tail.next() && left > 0; next++ {
		e := g.tail.at(next)
		if left -= len(e.body()); !l.sendRepair(g, s, node, &e.header, Frame{Body: e.body(), Hold: e.frame}) {
			break
		}
	}
	l.endServe(g, s, node, wire.CommandRepairDone, next-1)
}

func (l *Loop) sendRepair(g *Group, s vsr.Serve, node uint8, h *wire.PrepareHeader, f Frame) bool {
	repair := *h
	repair.Command = wire.CommandRepairPrepare
	if s.View != 0 {
		repair.View = s.View
	}
	var header wire.Header
	repair.Put(header[:])
	f.Group, f.Header = g.ID, &header
	l.Counters.Served.Add(1)
	return l.sendNode(node, f)
}

func (l *Loop) endServe(g *Group, s vsr.Serve, node uint8, c wire.Command, op uint64) {
	h := wire.RepairEndHeader{Preamble: wire.Preamble{
		Command: c, Cluster: g.peers.cluster, Size: wire.HeaderSize, Replica: g.peers.self,
	}, Nonce: s.Nonce, Op: op, Group: g.ID}
	var header wire.Header
	h.Put(header[:])
	l.sendNode(node, Frame{Group: g.ID, Header: &header})
}
