package metadatareplica

import (
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/wire"
)

// claims is what front-doors say of the sessions they hold. Nothing of it is replicated: a new primary
// knows none and finds every session unclaimed, which ends it only after an interval in which it can be
// told (design-arguments.md 11).
type claims struct {
	doors     map[uint64]*door
	held      map[wire.U128]claim
	unclaimed map[wire.U128]absence
}

// door is one front-door: the sequence of the claims it sends next, and when it was heard last, µs.
type door struct{ next, heard uint64 }

type claim struct{ door, session uint64 }

// absence is since when, µs, nobody claims a session.
type absence struct{ session, since uint64 }

// lead forgets what was claimed in an earlier term.
func (c *claims) lead() {
	*c = claims{doors: make(map[uint64]*door), held: make(map[wire.U128]claim), unclaimed: make(map[wire.U128]absence)}
}

// take notes what a front-door says. False: the claims before it were not heard, all have to be told again.
func (c *claims) take(q *link.Claims, now uint64) bool {
	d := c.doors[q.Door]
	switch {
	case q.Sequence == 0:
		for client, one := range c.held {
			if one.door == q.Door {
				delete(c.held, client)
			}
		}
		d = &door{}
		c.doors[q.Door] = d
	case d == nil || d.next != q.Sequence:
		return false
	}
	d.next, d.heard = q.Sequence+1, now
	for _, one := range q.Dropped {
		if c.held[one.Client] == (claim{q.Door, one.Session}) {
			delete(c.held, one.Client)
		}
	}
	for _, one := range q.Held {
		if old, ok := c.held[one.Client]; !ok || old.session <= one.Session {
			c.held[one.Client] = claim{q.Door, one.Session}
		}
	}
	return true
}

// abandoned lists the sessions that nobody has claimed for limit µs.
func (c *claims) abandoned(v *metadata.View, now, limit uint64) (clients []wire.U128) {
	for client, session := range v.Clients() {
		if now >= c.claimed(client, session.Epoch, now)+limit {
			clients = append(clients, client)
		}
	}
	c.tidy(v, now, limit)
	return clients
}

// claimed is when a session was last claimed, or when it was found that nobody does.
func (c *claims) claimed(client wire.U128, session, now uint64) uint64 {
	if one, ok := c.held[client]; ok && one.session == session {
		if d := c.doors[one.door]; d != nil {
			delete(c.unclaimed, client)
			return d.heard
		}
	}
	a, ok := c.unclaimed[client]
	if !ok || a.session != session {
		a = absence{session, now}
		c.unclaimed[client] = a
	}
	return a.since
}

// holds reports whether a front-door that is up holds the client's session.
func (c *claims) holds(client *metadata.Client, now, limit uint64) bool {
	one, ok := c.held[client.ID]
	if !ok || one.session != client.Epoch {
		return false
	}
	d := c.doors[one.door]
	return d != nil && now < d.heard+limit
}

// tidy forgets front-doors that have been silent for long, what they held, and clients that are not in the
// table any more.
func (c *claims) tidy(v *metadata.View, now, limit uint64) {
	for id, d := range c.doors {
		if now > d.heard+2*limit {
			delete(c.doors, id)
		}
	}
	for client := range c.unclaimed {
		if v.Client(client) == nil {
			delete(c.unclaimed, client)
		}
	}
	for client, one := range c.held {
		if c.doors[one.door] == nil {
			delete(c.held, client)
		}
	}
}

// takeClaims answers the claims of a front-door.
func (r *Replica) takeClaims(c *link.Call) {
	q, ok := link.DecodeClaims(c.Body)
	if !ok {
		c.Refuse(wire.CodeInvalidCommand, link.ReasonNone)
		return
	}
	if !r.claims.take(&q, r.engine.Now()) {
		c.Out = append(c.Out[:0], link.ClaimsAgain)
	}
	c.Finish()
}

// claimLimit is how long a session may go unclaimed, µs.
func (r *Replica) claimLimit() uint64 { return uint64(r.config.SessionClaim.Microseconds()) }

// logoutAbandoned ends the sessions nobody claims, as far as there is room; the rest waits for the next
// look, and so does a client with an op in flight: a Logout names no session and would end the one that
// a Register in front of it opens.
func (r *Replica) logoutAbandoned() {
	if !r.primary {
		return
	}
	for _, client := range r.claims.abandoned(r.current, r.engine.Now(), r.claimLimit()) {
		if r.pipelined[client] == 0 {
			r.own(wire.OpLogout, client, noRequest, make([]byte, wire.HeaderSize))
		}
	}
}
