package feed

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/wire"
)

// nothing answers no requests.
type nothing struct{}

func (nothing) Serve(c *link.Call) { c.Refuse(wire.CodeTransientNotAccepted, link.ReasonNone) }

// Over sockets: a client follows a source, and goes on where it was after the connection broke.
func TestFeedOverTheServicePlane(t *testing.T) {
	g := newGroup(t, 3)
	g.createStream("before", 3)
	secret, err := link.NewSecret("a secret of the cluster of tests", "")
	if err != nil {
		t.Fatal(err)
	}
	pool := buffer.NewPool(64 << 20)
	options := func(id uint8) link.Options {
		return link.Options{Node: &link.Node{Cluster: cluster, ID: id, Epoch: 1}, Secret: secret, Pool: pool}
	}
	serve := func(address string) (*link.Server, string) {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		server := link.NewServer(link.ServerConfig{Options: options(3), Service: nothing{}, Feed: NewPlane(g.sources[3].Source)})
		go func() { _ = server.Serve(listener) }()
		return server, listener.Addr().String()
	}
	server, address := serve("127.0.0.1:0")
	var remote atomic.Pointer[link.Remote]
	client := NewClient(ClientConfig{Cluster: cluster, Sources: []uint8{3}, Ask: func(_ uint8, q *Request) bool {
		r := remote.Load()
		return r != nil && r.Ask(q)
	}})
	defer client.Close()
	down := make(chan struct{}, 8)
	remote.Store(link.Dial(link.RemoteConfig{
		Options: options(wire.FrontDoorID), Address: address, Expect: 3, Feed: client.Receive(3),
		Up:   func(p link.Peer) { client.Up(p.ID) },
		Down: func(p link.Peer) { client.Down(p.ID); down <- struct{}{} },
	}))
	defer remote.Load().Close()
	select {
	case <-client.Ready():
	case <-time.After(10 * time.Second):
		t.Fatal("no view")
	}
	g.createStream("live", 3)
	if !client.Wait(2, 10*time.Second) {
		t.Fatalf("op %d", client.View().Op)
	}
	server.Close()
	<-down
	g.createStream("meanwhile", 3)
	server, _ = serve(address)
	defer server.Close()
	if !client.Wait(3, 10*time.Second) || !client.Fresh() {
		t.Fatalf("op %d, fresh %v", client.View().Op, client.Fresh())
	}
	if n := g.sources[3].Followers(); n != 1 {
		t.Errorf("%d followers", n)
	}
}
