package metadata

import (
	"slices"

	"github.com/whippet-mq/whippet/libs/wire"
)

// noUser owns the sessions of a deleted user, so that they do not pass to whoever gets its id next.
const noUser = ^uint32(0)

// orphaned reports whether the session's user was deleted.
func (c *Client) orphaned() bool { return c.UserID == noUser }

// register opens a session, or rebinds one: a new epoch with watermark, replies and memberships kept.
func (v *View) register(h *wire.PrepareHeader) wire.Code {
	if h.Client.IsZero() {
		return wire.CodeInvalidCommand
	}
	old := v.Client(h.Client)
	if old != nil && old.UserID != h.UserID && !old.orphaned() {
		return wire.CodeUnauthenticated
	}
	if old == nil {
		old = v.comeback(h.Client, h.UserID)
	}
	c := &Client{ID: h.Client, Slot: lowestFree(v.slots), Epoch: h.Op, UserID: h.UserID}
	if old != nil {
		c.Watermark, c.WatermarkChecksum = old.Watermark, old.WatermarkChecksum
		if v.holds(old) {
			c.Slot = old.Slot
		}
		c.Replies = slices.DeleteFunc(slices.Clone(old.Replies), func(r *Committed) bool {
			return r.Header.Operation == wire.OpRegister
		})
	}
	c.remember(h, nil)
	v.setClient(c)
	return 0
}

// holds reports whether c stands in the table.
func (v *View) holds(c *Client) bool { return v.Client(c.ID) != nil }

// comeback makes room for a newcomer and returns what is remembered of an earlier life of its id
// that was pushed out of the table, if the same user owned it.
func (v *View) comeback(id wire.U128, user uint32) *Client {
	if v.clients.Len() >= v.limits.Clients {
		_, victim := v.recency.At(0)
		v.retire(victim)
	}
	at, ok := v.retiredAt.Get(id)
	if !ok {
		return nil
	}
	old, _ := v.retired.Get(at)
	v.forgetRetired(at, id)
	if old.UserID != user {
		return nil
	}
	return old
}

// retire pushes a client out of a full table. Its watermark and replies stay known, at most as many
// as the table has slots, so that a repeat after a new login is still recognised.
func (v *View) retire(id wire.U128) {
	c := v.Client(id)
	v.dropClient(c)
	v.retired = v.retired.set(v.Op, c)
	v.retiredAt = v.retiredAt.set(id, v.Op)
	if v.retired.Len() > v.limits.Clients {
		at, oldest := v.retired.At(0)
		v.forgetRetired(at, oldest.ID)
	}
}

func (v *View) forgetRetired(at uint64, id wire.U128) {
	v.retired = v.retired.delete(at)
	v.retiredAt = v.retiredAt.delete(id)
}

// logout ends the client's session and all its memberships.
func (v *View) logout(id wire.U128) {
	if c := v.Client(id); c != nil {
		v.dropClient(c)
	}
	left := false
	for _, k := range v.Memberships(id) {
		g := v.GroupByKey(k)
		v.setGroup(g.leave(id))
		left = true
	}
	v.memberships = v.memberships.delete(id)
	if left {
		v.Revision++
	}
}

// record caches the reply to a committed request of a client that has a session, and moves the
// watermark. Ops the servers make themselves have client ids without one.
func (v *View) record(h *wire.PrepareHeader, body []byte) {
	old := v.Client(h.Client)
	if old == nil || !h.Operation.Known() { // a reply header cannot carry an unknown operation
		return
	}
	c := *old
	c.Replies = slices.Clone(old.Replies)
	c.remember(h, body)
	if h.Request > c.Watermark {
		c.Watermark, c.WatermarkChecksum = h.Request, h.RequestChecksum
	}
	v.setClient(&c)
}

// remember pushes the reply to h, dropping the oldest beyond RepliesPerClient.
func (c *Client) remember(h *wire.PrepareHeader, body []byte) {
	if n := len(c.Replies); n >= RepliesPerClient {
		c.Replies = slices.Delete(c.Replies, 0, n-RepliesPerClient+1)
	}
	c.Replies = append(c.Replies, &Committed{Header: wire.CommittedReply(h, len(body)), Body: body})
}

func (v *View) setClient(c *Client) {
	if old := v.Client(c.ID); old != nil {
		v.recency = v.recency.delete(old.recency())
	}
	v.clients = v.clients.set(c.ID, c)
	v.slots = v.slots.set(c.Slot, c.ID)
	v.recency = v.recency.set(c.recency(), c.ID)
}

func (v *View) dropClient(c *Client) {
	v.clients = v.clients.delete(c.ID)
	v.slots = v.slots.delete(c.Slot)
	v.recency = v.recency.delete(c.recency())
}

// orphan takes a deleted user's id from its sessions.
func (v *View) orphan(user uint32) {
	for _, c := range v.clients.All() {
		if c.UserID == user {
			changed := *c
			changed.UserID = noUser
			v.setClient(&changed)
		}
	}
}
