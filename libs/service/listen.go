package service

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/hashicorp/go-hclog"
)

// Listen opens the TCP listener of a setting. If the address was not given explicitly and its port
// is taken, a free port on the same host is used and logged; an explicit address that is taken is
// an error. Only ports that others learn from the process itself may move: the ops and the service
// port, never one that clients dial.
func Listen(c *Config, key, address string, log hclog.Logger) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err == nil {
		return l, nil
	}
	if c.Explicit(key) || !errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s = %q (%s): %w", key, address, c.Source(key), err)
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	l, err = net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	log.Info("port taken, using a free one", "setting", key, "default", address, "address", l.Addr().String())
	return l, nil
}
