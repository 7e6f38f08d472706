package partitionreplica

import (
	"encoding/binary"
	"errors"

	"github.com/whippet-mq/whippet/libs/wire"
)

// recentPer is how many writes of one connection a partition remembers.
const recentPer = 16

// recentLimit bounds the connections remembered; the ones quiet for longest go first.
const recentLimit = 4096

// recentIdle is how long a connection that writes nothing is remembered, in microseconds. A front-door
// repeats for less than half of that.
const recentIdle = 60_000_000

// recentScan is how many connections are looked through one by one: most partitions never have more writers at a
// time, and an idle one keeps no table.
const recentScan = 8

// recent recognises a front-door's repeat of a partition write: per connection the last writes with
// their front-door sequence. It is fed by staging, so it survives a fail-over, and cut with the ops
// it names. Time is that of the prepares.
type recent struct {
	oldest, newest *recentWrites // by last write
	count          int
	table          map[wire.U128]*recentWrites // nil up to recentScan
}

type recentWrites struct {
	connection   wire.U128
	last         uint64 // time of the last write
	older, newer *recentWrites
	n            int           // writes so far
	ring         []recentWrite // write i at i modulo recentPer
}

type recentWrite struct {
	sequence, op, base uint64
}

// find returns the op and base offset that sequence of the connection got.
func (r *recent) find(connection wire.U128, sequence uint64) (w recentWrite, ok bool) {
	c := r.of(connection)
	if c == nil || sequence == 0 {
		return recentWrite{}, false
	}
	for i := range c.ring {
		if c.ring[i].sequence == sequence {
			return c.ring[i], true
		}
	}
	return recentWrite{}, false
}

// of returns what is remembered of a connection, or nil.
func (r *recent) of(connection wire.U128) *recentWrites {
	if r.table != nil {
		return r.table[connection]
	}
	c := r.newest
	for c != nil && c.connection != connection {
		c = c.older
	}
	return c
}

// add remembers a write made at now.
func (r *recent) add(connection wire.U128, w recentWrite, now uint64) {
	if w.sequence == 0 || connection.IsZero() {
		return
	}
	c := r.of(connection)
	if c == nil {
		r.expire(now)
		if r.count >= recentLimit {
			r.forget(r.oldest)
		}
		c = &recentWrites{connection: connection}
		r.enter(c)
	} else if c != r.newest {
		r.unlink(c)
		r.link(c)
	}
	c.last = now
	if len(c.ring) < recentPer {
		c.ring = append(c.ring, w)
	} else {
		c.ring[c.n%recentPer] = w
	}
	c.n++
}

func (r *recent) enter(c *recentWrites) {
	r.link(c)
	switch r.count++; {
	case r.table != nil:
		r.table[c.connection] = c
	case r.count > recentScan:
		r.table = make(map[wire.U128]*recentWrites)
		for c = r.oldest; c != nil; c = c.newer {
			r.table[c.connection] = c
		}
	}
}

// expire forgets the connections that have been quiet for recentIdle.
func (r *recent) expire(now uint64) {
	for r.oldest != nil && r.oldest.last+recentIdle <= now {
		r.forget(r.oldest)
	}
}

func (r *recent) forget(c *recentWrites) {
	r.unlink(c)
	delete(r.table, c.connection)
	if r.count--; r.count == 0 {
		r.table = nil
	}
}

func (r *recent) link(c *recentWrites) {
	c.older, c.newer = r.newest, nil
	if r.newest != nil {
		r.newest.newer = c
	} else {
		r.oldest = c
	}
	r.newest = c
}

func (r *recent) unlink(c *recentWrites) {
	if c.older != nil {
		c.older.newer = c.newer
	} else {
		r.oldest = c.newer
	}
	if c.newer != nil {
		c.newer.older = c.older
	} else {
		r.newest = c.older
	}
	c.older, c.newer = nil, nil
}

// cut forgets the ops from op on.
func (r *recent) cut(op uint64) {
	for c := r.oldest; c != nil; c = c.newer {
		for i := range c.ring {
			if c.ring[i].op >= op {
				c.ring[i] = recentWrite{}
			}
		}
	}
}

// remembered is the recent writes as a checkpoint keeps them, so that a member recognises repeats although
// the log below is gone. A process that stands alone has no use for that: its front-door ends with it.
func (p *Partition) remembered() []byte {
	if p.group == nil || p.replica.config.Engine.Peers == nil {
		return nil
	}
	return p.recent.appendTo(nil, p.group.Applied())
}

const recentWriteSize = 24

// appendTo encodes the writes up to an op, the connection that is quiet for longest first:
// {connection u128, last u64, count u8, {sequence u64, op u64, base offset u64} × count}.
func (r *recent) appendTo(dst []byte, applied uint64) []byte {
	le := binary.LittleEndian
	for c := r.oldest; c != nil; c = c.newer {
		if c.last+recentIdle <= r.newest.last {
			continue
		}
		at := len(dst)
		dst = append(dst, make([]byte, 25)...)
		c.connection.Put(dst[at:])
		le.PutUint64(dst[at+16:], c.last)
		for i := max(0, c.n-recentPer); i < c.n; i++ {
			if w := c.ring[i%recentPer]; w.sequence != 0 && w.op <= applied {
				dst = le.AppendUint64(le.AppendUint64(le.AppendUint64(dst, w.sequence), w.op), w.base)
				dst[at+24]++
			}
		}
	}
	return dst
}

var errShortRecent = errors.New("partition: recent writes are cut short")

// decode fills an empty r from what appendTo made.
func (r *recent) decode(b []byte) error {
	le := binary.LittleEndian
	for len(b) > 0 {
		if len(b) < 25 || int(b[24]) > recentPer || len(b) < 25+int(b[24])*recentWriteSize {
			return errShortRecent
		}
		connection, last, n := wire.DecodeU128(b), le.Uint64(b[16:]), int(b[24])
		for b = b[25:]; n > 0; n, b = n-1, b[recentWriteSize:] {
			r.add(connection, recentWrite{sequence: le.Uint64(b), op: le.Uint64(b[8:]), base: le.Uint64(b[16:])}, last)
		}
	}
	return nil
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
