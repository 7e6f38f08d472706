package frontdoor

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/whippet-mq/whippet/libs/wire"
)

// binding ties a connection to a session of the metadata group. Its fields do not change.
type binding struct {
	client  wire.U128 // the id the client chose at login
	session uint64    // log position of the Register
	user    uint32

	// attached is the session this connection polls and commits for, nil for its own. It belongs to the
	// connection's goroutine.
	attached *attachment

	// superseded is set once the same client id has registered again on another connection.
	superseded atomic.Bool
}

// Clients is the set of connections of this front-door: what GetClients lists and where a client
// id finds the one connection that may act for it.
type Clients struct {
	mu       sync.Mutex
	last     uint64
	sessions map[uint32]*Session
	bound    map[wire.U128]*Session
}

func newClients() *Clients {
	return &Clients{sessions: make(map[uint32]*Session), bound: make(map[wire.U128]*Session)}
}

// add gives s its connection id and lists it.
func (c *Clients) add(s *Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		c.last++
		if id := uint32(c.last); id != 0 && c.sessions[id] == nil {
			s.id = wire.U128{Lo: c.last}
			c.sessions[id] = s
			return
		}
	}
}

// number returns a connection id that is given to nobody else, without listing it.
func (c *Clients) number() wire.U128 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	return wire.U128{Lo: c.last}
}

// remove forgets s.
func (c *Clients) remove(s *Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sessions, s.clientID())
	if b := s.binding.Load(); b != nil && c.bound[b.client] == s {
		delete(c.bound, b.client)
	}
}

// bind makes s the connection of b's client; an older connection of that client is superseded.
func (c *Clients) bind(s *Session, b *binding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.bound[b.client]; old != nil && old != s {
		if ob := old.binding.Load(); ob != nil && ob.client == b.client {
			ob.superseded.Store(true)
		}
	}
	c.bound[b.client] = s
	s.binding.Store(b)
}

// unbind ends b on s and reports whether b was still its binding.
func (c *Clients) unbind(s *Session, b *binding) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !s.binding.CompareAndSwap(b, nil) {
		return false
	}
	if c.bound[b.client] == s {
		delete(c.bound, b.client)
	}
	return true
}

// get returns the connection with that id, or nil.
func (c *Clients) get(id uint32) *Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sessions[id]
}

// len is the number of connections.
func (c *Clients) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sessions)
}

// all returns the connections by ascending id.
func (c *Clients) all() []*Session {
	c.mu.Lock()
	list := make([]*Session, 0, len(c.sessions))
	for _, s := range c.sessions {
		list = append(list, s)
	}
	c.mu.Unlock()
	slices.SortFunc(list, func(a, b *Session) int { return int(int64(a.clientID()) - int64(b.clientID())) })
	return list
}
