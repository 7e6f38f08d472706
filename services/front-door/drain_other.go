//go:build !linux

package frontdoor

import "net"

// drain takes up to n bytes off a socket, at least one, and throws them away.
func drain(sock net.Conn, n int) (int, error) { return drainRead(sock, n) }
