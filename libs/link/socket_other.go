//go:build !linux

package link

import "net"

// limitUnacknowledged has no portable form: keepalive and write deadlines are left.
func limitUnacknowledged(*net.TCPConn) {}
