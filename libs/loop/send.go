package loop

import (
	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// send lets a frame leave. The body of an op comes from the tail, or is read back.
func (l *Loop) send(g *Group, s *vsr.Send) {
	f := Frame{Group: g.ID, Header: &s.Header}
	switch {
	case len(s.Suffix) > 0:
		f.Body = wire.AppendSuffix(nil, s.Suffix)
	case s.Op == 0:
	default:
		body, frame, ok := g.bodyOf(s.Op)
		if !ok {
			l.sendStored(g, *s)
			return
		}
		f.Body, f.Hold = body, frame
	}
	l.sendTo(g, s.To, f)
}

func (l *Loop) sendTo(g *Group, to uint8, f Frame) {
	if to != vsr.Everyone {
		l.sendNode(g.peers.nodes[to], f)
		return
	}
	for i, node := range g.peers.nodes {
		if uint8(i) != g.peers.self {
			l.sendNode(node, f)
		}
	}
}

func (l *Loop) sendNode(node uint8, f Frame) bool {
	if l.env.Send(node, f) {
		return true
	}
	l.Counters.Unsent.Add(1)
	return false
}

// bodyOf returns the body of an op that is not applied yet.
func (g *Group) bodyOf(op uint64) ([]byte, *buffer.Frame, bool) {
	if op >= g.tail.first && op < g.tail.next() {
		e := g.tail.at(op)
		return e.body(), e.frame, true
	}
	for i := range g.peers.parked {
		if w := &g.peers.parked[i]; w.header.Op == op {
			return w.body.bytes[wire.HeaderSize:], w.body.frame, true
		}
	}
	return nil, nil, false
}

// stored is one op read back from the log.
type stored struct {
	header wire.PrepareHeader
	body   []byte
}

// sendStored sends an op that was applied already.
func (l *Loop) sendStored(g *Group, s vsr.Send) {
	read := l.reader(g)
	var body []byte
	l.env.Go(func() error {
		return read(s.Op, s.Op, func(o stored) error {
			body = o.body
			return nil
		})
	}, func(err error) {
		if err == nil && !g.gone {
			l.sendTo(g, s.To, Frame{Group: g.ID, Header: &s.Header, Body: body})
		}
	})
}

// reader returns a function that reads a range of a group's log back, bodies included, on any goroutine.
func (l *Loop) reader(g *Group) func(low, top uint64, visit func(stored) error) error {
	bodies := g.Machine.Bodies()
	return func(low, top uint64, visit func(stored) error) error {
		return l.env.Range(g.ID, low, top, func(e *journal.Entry, body []byte) error {
			o := stored{header: e.Header}
			if e.At.Len == 0 {
				o.body = append([]byte(nil), body...)
			} else {
				o.body = make([]byte, e.At.Len)
				if err := bodies(e.At, o.body); err != nil {
					return err
				}
			}
			return visit(o)
		})
	}
}
