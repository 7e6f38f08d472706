package partitionreplica

import (
	"encoding/binary"
	"time"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/wire"
)

const (
	// askViewsEvery is how often a node that lost its disk asks the others in which views its groups are.
	askViewsEvery = 500 * time.Millisecond
	viewLimit     = 1000 // ms another node has to answer
	viewSize      = 12
)

// answerViews says in which views the asked groups are that this loop hosts.
func (r *Replica) answerViews(e *loop.Engine, c *link.Call) {
	for ids := c.Body; len(ids) >= 8; ids = ids[8:] {
		if p := r.find(binary.LittleEndian.Uint64(ids)); p != nil && p.engine == e && !p.group.Lost() {
			c.Out = binary.LittleEndian.AppendUint64(c.Out, p.id)
			c.Out = binary.LittleEndian.AppendUint32(c.Out, p.group.View())
		}
	}
}

// watchGroups looks after the groups that do not take part yet: it hosts those a lost disk has taken from
// this node, asks the other members in which views they are, and counts the rest. It has damage mended.
func (r *Replica) watchGroups() {
	hosted := false
	for {
		select {
		case <-r.stop:
			return
		case <-time.After(askViewsEvery):
		}
		hosted = hosted || r.hostLostPartitions()
		asked, unsettled := r.unsettled()
		if !hosted {
			unsettled++ // who knows how many more
		}
		r.metrics.unsettled.Set(float64(unsettled))
		r.lookAfterDamage()
		for node, ids := range asked {
			r.askNode(node, ids)
		}
	}
}

// hostLostPartitions hosts the partitions this node may have had before its disk was lost. They become
// whole before anybody needs them. False: it is not known yet which.
func (r *Replica) hostLostPartitions() bool {
	if r.config.Joined == nil {
		return true
	}
	joined, known := r.config.Joined()
	if !known {
		return false
	}
	for _, s := range r.follower.View().Streams() {
		for _, t := range s.Topics() {
			for _, part := range t.AllPartitions() {
				if id := t.GroupID(&part); part.CreatedRevision <= joined && r.find(id) == nil {
					e := r.Engine(id)
					e.Do(func() { r.hostFor(e, id) })
				}
			}
		}
	}
	return true
}

// unsettled lists, by node to ask, the groups that came up without votes: this member may join no older
// view than the others are in, for it may have voted for it (rule D9). It counts all that do not take part.
func (r *Replica) unsettled() (asked map[uint8][]byte, count int) {
	asked = map[uint8][]byte{}
	for _, e := range r.engines {
		e.Wait(func() {
			e.Loop.Behind(func(g *loop.Group) {
				if !g.Current() {
					count++
				}
				if !g.Lost() {
					return
				}
				for _, node := range g.Nodes() {
					if node != r.config.Node {
						asked[node] = binary.LittleEndian.AppendUint64(asked[node], g.ID)
					}
				}
			})
		})
	}
	return asked, count
}

// askNode asks one node and tells the loops what it says.
func (r *Replica) askNode(node uint8, ids []byte) {
	if r.config.Dial == nil {
		return
	}
	service := r.config.Dial(node)
	if service == nil {
		return
	}
	c := link.NewCall()
	c.Internal, c.Group, c.Body, c.Deadline = link.InternalViews, binary.LittleEndian.Uint64(ids), ids, viewLimit
	c.Header.Operation = wire.OpNonReplicated
	service.Serve(c)
	<-c.Done()
	if c.Status != 0 {
		return
	}
	for b := c.Out; len(b) >= viewSize; b = b[viewSize:] {
		id, view := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint32(b[8:])
		if p := r.find(id); p != nil {
			p.engine.Do(func() { p.engine.Loop.PeerView(p.group, node, view) })
		}
	}
}
