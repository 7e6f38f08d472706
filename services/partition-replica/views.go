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

// askViews finds out, for the groups whose log and votes this node has lost, in which views the other
// members are. It may join no older one: it may have voted for the newest (rule D9).
func (r *Replica) askViews() {
	for {
		select {
		case <-r.stop:
			return
		case <-time.After(askViewsEvery):
		}
		asked := map[uint8][]byte{} // group ids by node
		for _, e := range r.engines {
			e.Wait(func() {
				for _, p := range r.of(e) {
					if !p.group.Lost() {
						continue
					}
					for _, node := range p.group.Nodes() {
						if node != r.config.Node {
							asked[node] = binary.LittleEndian.AppendUint64(asked[node], p.id)
						}
					}
				}
			})
		}
		for node, ids := range asked {
			r.askNode(node, ids)
		}
	}
}

// askNode asks one node and tells the loops what it says.
func (r *Replica) askNode(node uint8, ids []byte) {
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
