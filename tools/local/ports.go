package local

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// listeners of an all-role node that its roster entry names.
var listeners = []string{"tcp", "quic", "http", "websocket"}

// ports hands out loopback ports: the next ones of a range, or free ones. It holds the free ones until
// all are handed out, so that none is given twice.
type ports struct {
	next int
	host string // "": loopback
	held []net.Listener
}

// member plans a process with the ports that others must know before it runs.
func (p *ports) member(role Role, id int) (m Member, err error) {
	m = Member{Role: role, ID: id, Host: p.host}
	switch role {
	case Metadata:
		m.Replica, err = p.pair(m)
	case AllRole:
		if m.Replica, err = p.one(m); err != nil {
			return m, err
		}
		m.Ports = map[string]string{}
		for _, name := range listeners {
			if m.Ports[name], err = p.one(m); err != nil {
				return m, err
			}
		}
	case NATS:
		m.Ports = map[string]string{}
		for _, name := range []string{natsPort, natsMonitor} {
			if m.Ports[name], err = p.one(m); err != nil {
				return m, err
			}
		}
	}
	return m, err
}

func (p *ports) one(m Member) (string, error) {
	if p.next > 0 {
		p.next++
		return m.at(p.next - 1), nil
	}
	l, err := listen()
	if err != nil {
		return "", err
	}
	p.held = append(p.held, l)
	return l.Addr().String(), nil
}

// Free ports are taken from below the range in which the system finds ports by itself: one from there
// may be that of somebody's connection by the time its process binds it.
const (
	firstPort  = 10_000
	beyondPort = 32_000
)

// listen binds a free port.
func listen() (l net.Listener, err error) {
	for range 100 {
		if l, err = net.Listen("tcp", loopback(firstPort+rand.IntN(beyondPort-firstPort))); err == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("no free port: %w", err)
}

// pair is a port whose successor is free too: a metadata replica serves the replica plane on the first,
// the service plane on the second.
func (p *ports) pair(m Member) (string, error) {
	if p.next > 0 {
		p.next += 2
		return m.at(p.next - 2), nil
	}
	for range 100 {
		first, err := listen()
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

func loopback(port int) string { return Member{}.at(port) }

// at is a listener of a member; of port 0, one it finds by itself.
func (m Member) at(port int) string { return net.JoinHostPort(m.host(), strconv.Itoa(port)) }

func (m Member) host() string { return cmp.Or(m.Host, "127.0.0.1") }
