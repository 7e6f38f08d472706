package frontdoor

import (
	"time"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/wire"
)

// claimEvery is how often the metadata primary hears which sessions this front-door holds. Sessions that it
// does not hear of for an interval are ended: that is how those of a front-door that was killed go away
// (design-arguments.md 11).
const claimEvery = 5 * time.Second

// claimLimit is how long, in milliseconds, a primary elsewhere may take to answer.
const claimLimit = 2000

// claimer tells the metadata primary what is held: everything at first and whenever the primary does not
// know what it was told before, otherwise what changed.
type claimer struct {
	server *Server
	told   map[wire.U128]uint64 // client -> session
	next   uint64               // sequence of the next claims, 0: everything
}

// claim keeps telling until the server stops.
func (s *Server) claim() {
	c := &claimer{server: s}
	ticker := time.NewTicker(claimEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			c.tell()
		case <-s.done:
			return
		}
	}
}

// tell makes the claims of this moment.
func (c *claimer) tell() {
	held := c.server.core.clients.held()
	c.server.local.hold(held)
	for range 2 {
		taken, again := c.say(held)
		if taken {
			c.told = held
			c.next++
			return
		}
		c.next = 0
		if !again {
			return // nobody leads, or nothing was heard: all of it next time
		}
	}
}

// say tells held once; again: the primary wants everything.
func (c *claimer) say(held map[wire.U128]uint64) (taken, again bool) {
	q := link.Claims{Door: c.server.core.process, Sequence: c.next}
	for client, session := range held {
		if c.next == 0 || c.told[client] != session {
			q.Held = append(q.Held, link.Claim{Client: client, Session: session})
		}
	}
	if c.next > 0 {
		for client, session := range c.told {
			if held[client] != session {
				q.Dropped = append(q.Dropped, link.Claim{Client: client, Session: session})
			}
		}
	}
	call := link.NewCall()
	call.Internal, call.Deadline, call.Body = link.InternalClaims, claimLimit, q.Append(nil)
	call.Header.Operation = wire.OpNonReplicated
	c.server.core.askMetadata(call)
	again = call.Status == 0 && len(call.Out) == 1 && call.Out[0] == link.ClaimsAgain
	return call.Status == 0 && !again, again
}

// held are the sessions of this front-door's connections.
func (c *Clients) held() map[wire.U128]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	held := make(map[wire.U128]uint64, len(c.bound))
	for client, s := range c.bound {
		if b := s.binding.Load(); b != nil && b.client == client && !b.superseded.Load() {
			held[client] = b.session
		}
	}
	return held
}
