package service

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Peer is one process of a static roster.
type Peer struct {
	ID      uint8
	Replica string // host:port of its replica plane
	Service string // host:port of its service plane, empty when peers tell each other
}

// MetadataRoster reads metadata.roster: "id=host:port,...". The port is that of the replica plane;
// the service plane of a metadata replica is on the next one.
func (c *Config) MetadataRoster() ([]Peer, error) {
	var roster []Peer
	for entry := range strings.SplitSeq(c.Metadata.Roster, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		p, err := parsePeer(entry)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", entry, err)
		}
		for _, other := range roster {
			if other.ID == p.ID || other.Replica == p.Replica {
				return nil, fmt.Errorf("%q: its id or address is there twice", entry)
			}
		}
		roster = append(roster, p)
	}
	switch len(roster) {
	case 1, 3, 5, 7:
		return roster, nil
	}
	return nil, fmt.Errorf("%d metadata replicas, want 1, 3, 5 or 7", len(roster))
}

func parsePeer(entry string) (p Peer, err error) {
	id, address, found := strings.Cut(entry, "=")
	n, err := strconv.ParseUint(strings.TrimSpace(id), 10, 8)
	if err != nil || !found || n > 254 {
		return p, errors.New("want id=host:port with an id of 0..254")
	}
	host, port, err := net.SplitHostPort(strings.TrimSpace(address))
	if err != nil || host == "" {
		return p, errors.New("want id=host:port")
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 || number == 65535 {
		return p, errors.New("want a port of 1..65534: the next one is the service plane's")
	}
	return Peer{ID: uint8(n), Replica: net.JoinHostPort(host, port), Service: net.JoinHostPort(host, strconv.FormatUint(number+1, 10))}, nil
}
