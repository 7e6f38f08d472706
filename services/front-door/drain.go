package frontdoor

import (
	"net"
	"sync"
)

// scratch is where bytes are read to that nobody wants.
var scratch = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// drainRead takes up to n bytes off a connection, at least one, and throws them away.
func drainRead(sock net.Conn, n int) (int, error) {
	b := scratch.Get().(*[64 << 10]byte)
	defer scratch.Put(b)
	return sock.Read(b[:min(n, len(b))])
}
