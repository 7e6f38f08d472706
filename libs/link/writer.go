package link

import (
	"net"
	"time"
)

const (
	// maxSlices bounds a vectored write.
	maxSlices = 64
	// writeBytes is how much bulk goes to the socket before urgent frames are looked for again.
	writeBytes = 1 << 20
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
	pending int // bytes of this write
	vector  net.Buffers
}

// run writes until the queue ends or the connection fails. It gives back everything it took.
func (w *writer) run() error {
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
	w.used, w.pending = 0, 0
	size, frames := 0, 0
	from, to := 0, 0 // a run of the arena that is not a slice yet
	for at+n < len(b.parcels) && (n == 0 || w.pending < writeBytes && w.used+4 <= maxSlices) {
		p := &b.parcels[at+n]
		n++
		size += p.size()
		if p.ticket != 0 && !w.tickets.begin(p.ticket) {
			p.ticket = 0 // withdrawn: only the bytes of the queue are given back
			continue
		}
		frames++
		w.pending += p.size()
		if p.front != to {
			w.slice(b.arena[from:to])
			from = p.front
		}
		to = p.split
		if len(p.body) > 0 {
			w.slice(b.arena[from:to])
			w.slice(p.body)
			from = p.split
		}
		to = p.end
	}
	w.slice(b.arena[from:to])
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

func (w *writer) slice(b []byte) {
	if len(b) > 0 {
		w.slices[w.used] = b
		w.used++
	}
}

func (w *writer) flush() error {
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
