package partitionreplica

import (
	"encoding/binary"

	"github.com/whippet-mq/whippet/libs/wire"
)

// recentPer is how many writes of one connection a partition remembers.
const recentPer = 16

// recentLimit bounds the connections remembered; the ones quiet for longest go first.
const recentLimit = 4096

// recent recognises a front-door's repeat of a partition write: per connection the last writes with
// their front-door sequence. It is fed by staging, so it survives a fail-over, and cut with the ops
// it names.
type recent struct {
	connections map[wire.U128]*recentWrites
	order       []wire.U128 // by first write since the last sweep
}

type recentWrites struct {
	ring [recentPer]recentWrite
	n    int
}

type recentWrite struct {
	sequence, op, base uint64
}

// find returns the op and base offset that sequence of the connection got.
func (r *recent) find(connection wire.U128, sequence uint64) (w recentWrite, ok bool) {
	c := r.connections[connection]
	if c == nil || sequence == 0 {
		return recentWrite{}, false
	}
	for i := range min(c.n, recentPer) {
		if c.ring[i].sequence == sequence {
			return c.ring[i], true
		}
	}
	return recentWrite{}, false
}

func (r *recent) add(connection wire.U128, w recentWrite) {
	if w.sequence == 0 || connection.IsZero() {
		return
	}
	c := r.connections[connection]
	if c == nil {
		if r.connections == nil {
			r.connections = make(map[wire.U128]*recentWrites)
		}
		r.evict()
		c = new(recentWrites)
		r.connections[connection] = c
		r.order = append(r.order, connection)
	}
	c.ring[c.n%recentPer] = w
	c.n++
}

// evict makes room for one connection.
func (r *recent) evict() {
	for len(r.order) >= recentLimit {
		delete(r.connections, r.order[0])
		r.order = r.order[1:]
	}
}

// cut forgets the ops from op on.
func (r *recent) cut(op uint64) {
	for _, id := range r.order {
		c := r.connections[id]
		for i := range min(c.n, recentPer) {
			if c.ring[i].op >= op {
				c.ring[i] = recentWrite{}
			}
		}
	}
}

// confirmation appends the SendMessages reply body: one confirmation.
func confirmation(dst []byte, stream, topic, partition uint32, base uint64) []byte {
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, 1)
	dst = le.AppendUint32(dst, stream)
	dst = le.AppendUint32(dst, topic)
	dst = le.AppendUint32(dst, partition)
	return le.AppendUint64(dst, base)
}
