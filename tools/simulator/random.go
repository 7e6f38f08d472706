package simulator

import (
	"math"

	"github.com/whippet-mq/whippet/libs/wire"
)

// stream is one source of chance. Every concern has its own, so that switching a fault off leaves the
// draws of the others alone.
type stream struct{ state uint64 }

func newStream(seed uint64, salt string) *stream {
	return &stream{state: scramble(seed ^ wire.Hash64([]byte(salt)))}
}

// scramble is the finalizer of splitmix64.
func scramble(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (s *stream) next() uint64 {
	s.state += 0x9e3779b97f4a7c15
	return scramble(s.state)
}

// fraction is in [0, 1).
func (s *stream) fraction() float64 { return float64(s.next()>>11) / (1 << 53) }

// below is in [0, n); 0 when n is 0.
func (s *stream) below(n uint64) uint64 {
	if n == 0 {
		return 0
	}
	return s.next() % n
}

func (s *stream) index(n int) int { return int(s.below(uint64(n))) }

// between is in [low, high].
func (s *stream) between(low, high uint64) uint64 { return low + s.below(high-low+1) }

// chance is true with probability p. It draws even when p is 0.
func (s *stream) chance(p float64) bool { return s.fraction() < p }

// about is exponentially distributed around mean, at least 1 and at most ten times mean.
func (s *stream) about(mean uint64) uint64 {
	x := -math.Log(1-s.fraction()) * float64(mean)
	return max(1, uint64(min(x, 10*float64(mean))))
}
