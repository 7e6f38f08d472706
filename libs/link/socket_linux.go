package link

import (
	"net"

	"golang.org/x/sys/unix"
)

// unacknowledgedFor is the time in ms after which a peer that acknowledges nothing is given up.
const unacknowledgedFor = 5000

func limitUnacknowledged(t *net.TCPConn) {
	raw, err := t.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, unacknowledgedFor) // keepalive is left
	})
}
