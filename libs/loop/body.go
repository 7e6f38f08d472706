package loop

import (
	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// body is the bytes of a prepare that came from another member: 256 bytes for its header, then the
// body. The core knows it by a token.
type body struct {
	frame *buffer.Frame // owns bytes; nil: the collector does
	bytes []byte
}

func (b *body) release() {
	if b.frame != nil {
		b.frame.Release()
	}
	*b = body{}
}

// bodies gives out tokens. 0 stands for no body.
type bodies struct {
	slots []body
	free  []vsr.Body
}

func (s *bodies) put(b body) vsr.Body {
	if n := len(s.free); n > 0 {
		t := s.free[n-1]
		s.free = s.free[:n-1]
		s.slots[t-1] = b
		return t
	}
	s.slots = append(s.slots, b)
	return vsr.Body(len(s.slots))
}

// take ends a token.
func (s *bodies) take(t vsr.Body) body {
	b := s.slots[t-1]
	if b.bytes == nil {
		panic("loop: body token used twice")
	}
	s.slots[t-1] = body{}
	s.free = append(s.free, t)
	if len(s.free) == len(s.slots) {
		s.slots, s.free = nil, nil
	}
	return b
}

// takeBody returns the body of an append; a prepare without one gets room for its header.
func (l *Loop) takeBody(t vsr.Body) body {
	if t == 0 {
		return body{bytes: make([]byte, wire.HeaderSize)}
	}
	return l.bodies.take(t)
}

func (l *Loop) release(t vsr.Body) {
	if t != 0 {
		b := l.bodies.take(t)
		b.release()
	}
}
