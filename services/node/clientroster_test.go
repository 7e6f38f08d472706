package node

import (
	"net/netip"
	"testing"

	"github.com/whippet-mq/whippet/libs/service"
	"github.com/whippet-mq/whippet/libs/wire"
)

func TestRosterAddressByNetwork(t *testing.T) {
	e := newRosterEntry(&service.ClusterNode{
		Name: "b", IP: "10.0.0.2", AdvertisedAddress: "Broker-2.Example.COM", ReplicaID: 2,
		Ports: service.NodePorts{TCP: 8090, HTTP: 3000, TCPReplica: 9090},
		AdvertisedAddresses: []service.AdvertisedAddress{
			{ClientCIDR: "10.0.0.0/8", Address: "10.9.9.9"},
			{ClientCIDR: "10.1.0.0/16", Address: "FD00::00AA"},
			{ClientCIDR: "fd00::/8", Address: "fd00::1"},
		},
	})
	want := wire.ClusterNode{Name: "b", Address: "broker-2.example.com", TCP: 8090, HTTP: 3000, Status: wire.NodeHealthy}
	if e.node != want || e.id != 2 {
		t.Errorf("%+v, want %+v", e.node, want)
	}
	for from, address := range map[string]string{
		"10.1.2.3": "fd00::aa", "10.2.2.3": "10.9.9.9", "fd00::7": "fd00::1", "192.0.2.1": "broker-2.example.com",
	} {
		if got := e.address(netip.MustParseAddr(from)); got != address {
			t.Errorf("for %s: %s, want %s", from, got, address)
		}
	}
	if got := e.address(netip.Addr{}); got != "broker-2.example.com" {
		t.Errorf("for nobody known: %s", got)
	}
}

func TestRosterPortsAreBound(t *testing.T) {
	c := &service.Config{}
	c.TCP.Address, c.QUIC.Address, c.HTTP.Address, c.WebSocket.Address = "0.0.0.0:8090", "[::1]:8080", "127.0.0.1:3000", "127.0.0.1:8092"
	bindRoster(c, service.NodePorts{TCP: 8091, QUIC: 8081, WebSocket: 0, HTTP: 3001})
	got := [4]string{c.TCP.Address, c.QUIC.Address, c.HTTP.Address, c.WebSocket.Address}
	if want := [4]string{"0.0.0.0:8091", "[::1]:8081", "127.0.0.1:3001", "127.0.0.1:8092"}; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
