package link

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
)

// relay passes connections on to address; while gate is locked nothing comes back.
func relay(t *testing.T, address string, gate *sync.Mutex) string {
	return serve(t, func(l net.Listener) error {
		for {
			conn, err := l.Accept()
			if err != nil {
				return nil
			}
			other, err := net.Dial("tcp", address)
			if err != nil {
				return err
			}
			go func() { _, _ = io.Copy(other, conn); _ = other.Close() }()
			go func() {
				b := make([]byte, 4096)
				for {
					n, err := other.Read(b)
					gate.Lock()
					gate.Unlock() //nolint:staticcheck // waits
					if n > 0 {
						_, _ = conn.Write(b[:n])
					}
					if err != nil {
						_ = conn.Close()
						return
					}
				}
			}()
		}
	})
}

// TestDoubt: calls to a process that is stopped can be made elsewhere long before its connection is given
// up, and it is used again once it goes on.
func TestDoubt(t *testing.T) {
	p := newServer(t, serviceFunc(func(c *Call) { c.Finish() }), nil)
	var gate sync.Mutex
	p.address = relay(t, p.address, &gate)
	p.dial(t, func(c *RemoteConfig) { c.Doubt, c.Silence = 100*time.Millisecond, time.Hour })
	if c := ask(t, p.remote, sampleCall()); c.Status != 0 {
		t.Fatalf("status %v", c.Status)
	}
	gate.Lock()
	if c := ask(t, p.remote, sampleCall()); c.Status != wire.CodeTransientNotCommitted || c.Reason != ReasonUnreachable {
		t.Errorf("call that waits: status %v, reason %d", c.Status, c.Reason)
	}
	if c := ask(t, p.remote, sampleCall()); c.Status != wire.CodeTransientNotAccepted || c.Reason != ReasonUnreachable {
		t.Errorf("next call: status %v, reason %d", c.Status, c.Reason)
	}
	gate.Unlock()
	until(t, "it is used again", func() bool { return ask(t, p.remote, sampleCall()).Status == 0 })
	if len(p.down) > 0 {
		t.Error("the connection was given up")
	}
}
