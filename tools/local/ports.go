package local

import (
	"fmt"
	"net"
	"strconv"
)

// listeners of an all-role node that its roster entry names.
var listeners = []string{"tcp", "quic", "http", "websocket"}

// ports hands out loopback ports: the next ones of a range, or free ones. It holds the free ones until
// all are handed out, so that none is given twice.
type ports struct {
	next int
	held []net.Listener
}

// member plans a process with the ports that others must know before it runs.
func (p *ports) member(role Role, id int) (m Member, err error) {
	m = Member{Role: role, ID: id}
	switch role {
	case Metadata:
		m.Replica, err = p.pair()
	case AllRole:
		if m.Replica, err = p.one(); err != nil {
			return m, err
		}
		m.Ports = map[string]string{}
		for _, name := range listeners {
			if m.Ports[name], err = p.one(); err != nil {
				return m, err
			}
		}
	}
	return m, err
}

func (p *ports) one() (string, error) {
	if p.next > 0 {
		p.next++
		return loopback(p.next - 1), nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	p.held = append(p.held, l)
	return l.Addr().String(), nil
}

// pair is a port whose successor is free too: a metadata replica serves the replica plane on the first,
// the service plane on the second.
func (p *ports) pair() (string, error) {
	if p.next > 0 {
		p.next += 2
		return loopback(p.next - 2), nil
	}
	for range 100 {
		first, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		p.held = append(p.held, first)
		second, err := net.Listen("tcp", loopback(first.Addr().(*net.TCPAddr).Port+1))
		if err != nil {
			continue
		}
		p.held = append(p.held, second)
		return first.Addr().String(), nil
	}
	return "", fmt.Errorf("no two free ports in a row")
}

func (p *ports) release() {
	for _, l := range p.held {
		_ = l.Close()
	}
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
