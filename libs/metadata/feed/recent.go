package feed

import "github.com/whippet-mq/whippet/libs/wire"

// recent holds the frames of ops first..last, at most recentOps and recentBytes of them.
type recent struct {
	first, last uint64 // last is the highest applied op, first one above it when there is no frame
	ring        [][]byte
	bytes       int
}

// start says that everything up to op was applied before there was a frame.
func (r *recent) start(op uint64) { r.first, r.last = op+1, op }

// reach notes that op is applied. If its frame never came, the state was taken over from another replica: the
// range starts anew behind it.
func (r *recent) reach(op uint64) {
	if r.first > 0 && op > r.last {
		clear(r.ring)
		r.bytes = 0
		r.start(op)
	}
}

// push takes the frame of the op behind last. Any other op starts the range anew.
func (r *recent) push(op uint64, frame []byte) {
	if r.ring == nil {
		r.ring = make([][]byte, recentOps)
	}
	if op != r.last+1 || r.first == 0 {
		clear(r.ring)
		r.bytes = 0
		r.start(op - 1)
	}
	if r.last-r.first+1 == recentOps {
		r.drop()
	}
	r.last = op
	r.ring[op%recentOps] = frame
	r.bytes += len(frame)
	for r.bytes > recentBytes && r.first < r.last {
		r.drop()
	}
}

func (r *recent) drop() {
	at := &r.ring[r.first%recentOps]
	r.bytes -= len(*at)
	*at = nil
	r.first++
}

// at is the frame of an op up to last, nil when it is gone.
func (r *recent) at(op uint64) []byte {
	if op < r.first || r.ring == nil {
		return nil
	}
	return r.ring[op%recentOps]
}

// identity is that of the prepare at last, zero while it is not known.
func (r *recent) identity() wire.U128 {
	frame := r.at(r.last)
	if frame == nil {
		return wire.U128{}
	}
	return wire.DecodeU128(frame)
}
