package httpapi

import (
	"net"
	"sync"
	"sync/atomic"
)

// Partition writes that may be in flight at one time.
const (
	writesPerCaller = 32
	writesPerNode   = 128
)

// inFlight counts the partition writes of each credential and of the node.
type inFlight struct {
	mu    sync.Mutex
	total int
	by    map[string]int
}

func newInFlight() *inFlight { return &inFlight{by: make(map[string]int)} }

// enter admits a write or says why not. leave must follow an admission.
func (f *inFlight) enter(key string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.by[key] >= writesPerCaller:
		return errInFlight
	case f.total >= writesPerNode:
		return errBusy
	}
	f.by[key]++
	f.total++
	return nil
}

func (f *inFlight) leave(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.total--
	if f.by[key]--; f.by[key] == 0 {
		delete(f.by, key)
	}
}

// bounded is a listener with a bound on open connections: what comes beyond is closed at once.
type bounded struct {
	net.Listener
	open atomic.Int64
	max  int64
}

func newBounded(l net.Listener, limit int) *bounded { return &bounded{Listener: l, max: int64(limit)} }

// Accept returns the next connection that is within the bound.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if b.open.Add(1) <= b.max {
			return &countedConn{Conn: c, open: &b.open}, nil
		}
		b.open.Add(-1)
		_ = c.Close()
	}
}

type countedConn struct {
	net.Conn
	open *atomic.Int64
	once sync.Once
}

// Close closes the connection and counts it off.
func (c *countedConn) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}
