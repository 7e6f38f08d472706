package feed

import (
	"sync"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/wire"
)

// Plane serves a source to the processes that are connected to the service plane of this one. It
// implements link.Feed.
type Plane struct {
	source *Source

	mu    sync.Mutex
	conns map[*link.Conn]*Follower
}

// NewPlane makes a source reachable.
func NewPlane(s *Source) *Plane { return &Plane{source: s, conns: make(map[*link.Conn]*Follower)} }

// connSink is a connection as a sink. The link copies what it is given.
type connSink struct{ conn *link.Conn }

func (s connSink) Send(header, body []byte) bool {
	return s.conn.Send((*wire.Header)(header), body, nil)
}

func (p *Plane) follower(c *link.Conn) *Follower {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.conns[c]
	if f == nil {
		f = p.source.Open(connSink{c})
		p.conns[c] = f
	}
	return f
}

// Subscribe implements link.Feed.
func (p *Plane) Subscribe(c *link.Conn, h wire.RequestPreparesHeader) {
	if p.follower(c).Subscribe(&h) != nil {
		c.Close()
	}
}

// StateTransfer implements link.Feed. A snapshot takes its time to build.
func (p *Plane) StateTransfer(c *link.Conn, h wire.RequestStateTransferHeader) {
	f := p.follower(c)
	go func() {
		if f.Transfer(&h) != nil {
			c.Close()
		}
	}()
}

// Chunk implements link.Feed.
func (p *Plane) Chunk(c *link.Conn, h wire.RequestStateChunkHeader) {
	if p.follower(c).Chunk(&h) != nil {
		c.Close()
	}
}

// Closed implements link.Feed.
func (p *Plane) Closed(c *link.Conn) {
	p.mu.Lock()
	f := p.conns[c]
	delete(p.conns, c)
	p.mu.Unlock()
	if f != nil {
		f.Close()
	}
}

// Receive is what a link.Remote to a source has as its Feed; Up and Down are told by it too.
func (c *Client) Receive(node uint8) func(h *wire.Header, f *buffer.Frame) {
	return func(h *wire.Header, f *buffer.Frame) {
		if f == nil {
			c.Frame(node, h, nil, nil)
			return
		}
		c.Frame(node, h, f.Bytes()[wire.HeaderSize:], f.Release)
	}
}

var _ link.Feed = (*Plane)(nil)
