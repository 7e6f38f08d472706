package link

import (
	"net"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
)

const (
	// maxSlices bounds a vectored write.
	maxSlices = 64
	// smallPiece is the size below which bytes are copied into one buffer instead of taking a slice of
	// their own: one buffer beats many small ones.
	smallPiece = 4 << 10
	// writeBytes is how much bulk goes to the socket before urgent frames are looked for again.
	writeBytes = 1 << 20
	// scratchSize is the buffer of small pieces of one write.
	scratchSize = 64 << 10
	// writePatience is the time in which a peer must take what is written to it, plus one second for each MiB.
	writePatience = 10 * time.Second
)

// tickets tells a sender what becomes of the frames whose bodies it lent.
type tickets interface {
	begin(ticket uint64) bool // false: the frame was withdrawn, its body is not to be touched
	written(ticket uint64)
}

// writer is the one goroutine that writes to a connection.
type writer struct {
	conn    net.Conn
	out     *outbound
	tickets tickets // nil when no frame has one
	count   *flow

	urgent, bulk batch
	next         int // first parcel of bulk not written yet

	slices  [maxSlices][]byte
	used    int
	scratch []byte // small pieces of this write, a prefix of them already in slices
	begun   int    // where the slice under construction begins in scratch
	pending int    // bytes of this write
	vector  net.Buffers
}

// run writes until the queue ends or the connection fails. It gives back everything it took.
func (w *writer) run() error {
	w.scratch = make([]byte, 0, scratchSize)
	for {
		more := w.next < len(w.bulk.parcels)
		if !more {
			w.bulk.reset()
			w.next = 0
		}
		w.urgent.reset()
		if !w.out.take(&w.urgent, &w.bulk, !more) {
			w.abandon()
			return nil
		}
		if err := w.round(); err != nil {
			w.abandon()
			return err
		}
	}
}

// round writes all urgent frames and then bulk up to writeBytes.
func (w *writer) round() error {
	for at := 0; at < len(w.urgent.parcels); {
		n, err := w.write(&w.urgent, at)
		if err != nil {
			return err
		}
		at += n
	}
	if w.next < len(w.bulk.parcels) {
		n, err := w.write(&w.bulk, w.next)
		w.next += n
		return err
	}
	return nil
}

// write sends parcels of b from at on with one vectored write and returns how many it took.
func (w *writer) write(b *batch, at int) (n int, err error) {
	w.used, w.begun, w.pending, w.scratch = 0, 0, 0, w.scratch[:0]
	size, frames := 0, 0
	for at+n < len(b.parcels) {
		p := &b.parcels[at+n]
		if n > 0 && (w.pending >= writeBytes || !w.room(p)) {
			break
		}
		n++
		size += p.size()
		if p.ticket != 0 && !w.tickets.begin(p.ticket) {
			p.ticket = 0 // withdrawn: only the bytes of the queue are given back
			continue
		}
		if !p.bare {
			w.piece(p.head[:])
		}
		w.piece(p.body)
		w.piece(b.arena[p.from:p.to])
		frames++
	}
	err = w.flush()
	w.count.add(frames, w.pending)
	for i := at; i < at+n; i++ {
		p := &b.parcels[i]
		if p.owner != nil {
			p.owner.Release()
			p.owner = nil
		}
		if p.ticket != 0 {
			w.tickets.written(p.ticket)
			p.ticket = 0
		}
	}
	w.out.written(size)
	return n, err
}

// room reports whether p's pieces fit into this write.
func (w *writer) room(p *parcel) bool {
	small := wire.HeaderSize
	for _, n := range [2]int{len(p.body), p.to - p.from} {
		if n < smallPiece {
			small += n
		}
	}
	return w.used+4 <= maxSlices && len(w.scratch)+small <= cap(w.scratch)
}

func (w *writer) piece(b []byte) {
	if len(b) == 0 {
		return
	}
	w.pending += len(b)
	if len(b) < smallPiece {
		w.scratch = append(w.scratch, b...)
		return
	}
	w.cut()
	w.slices[w.used] = b
	w.used++
}

// cut makes a slice of the small pieces gathered since the last one.
func (w *writer) cut() {
	if len(w.scratch) > w.begun {
		w.slices[w.used] = w.scratch[w.begun:len(w.scratch):len(w.scratch)]
		w.used++
		w.begun = len(w.scratch)
	}
}

func (w *writer) flush() error {
	w.cut()
	if w.used == 0 {
		return nil
	}
	w.conn.SetWriteDeadline(time.Now().Add(writePatience + time.Duration(w.pending>>20)*time.Second))
	var err error
	if w.used == 1 {
		_, err = w.conn.Write(w.slices[0])
	} else {
		w.vector = w.slices[:w.used]
		_, err = w.vector.WriteTo(w.conn)
	}
	clear(w.slices[:w.used])
	return err
}

// abandon releases what was taken and not written.
func (w *writer) abandon() {
	w.urgent.release()
	w.bulk.release()
}
