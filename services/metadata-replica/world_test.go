package metadatareplica

import (
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// open starts a replica on mem that is driven step by step: a call is answered when Serve returns.
func open(t *testing.T, mem vfs.FS) *Replica {
	t.Helper()
	return openWith(t, mem, func(*Config) {})
}

func openWith(t *testing.T, mem vfs.FS, change func(*Config)) *Replica {
	t.Helper()
	config := Config{SessionClaim: time.Hour, Rebalance: time.Hour, Engine: loop.EngineOptions{
		Limits: loop.Limits{Pipeline: 32, Queue: 64}, FileSize: 256 << 10, Budget: 8 << 20, Stepped: true,
	}}
	change(&config)
	r, err := Open(config, Deps{
		FS: mem, Log: hclog.NewNullLogger(), Registry: prometheus.NewRegistry(),
		Root: func() (metadata.RootUser, error) { return metadata.RootUser{Name: "root", PasswordHash: "none"}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Start()
	return r
}

func call(op wire.Operation, client wire.U128, session, request uint64, body []byte) *link.Call {
	c := link.NewCall()
	c.Group, c.Body = wire.MetadataGroup, body
	c.Header = wire.RequestHeader{Operation: op, Client: client, Session: session, Request: request}
	return c
}

func login(client wire.U128) *link.Call { return call(wire.OpRegister, client, 0, 0, nil) }

func createStream(client wire.U128, session, request uint64, name string) *link.Call {
	return call(wire.OpCreateStream, client, session, request, wire.CreateStreamRequest{Name: []byte(name)}.Append(nil))
}

// serve fails the test unless the call is answered with success.
func serve(t *testing.T, r *Replica, c *link.Call) *link.Call {
	t.Helper()
	r.Serve(c)
	succeeded(t, c)
	return c
}

func succeeded(t *testing.T, c *link.Call) {
	t.Helper()
	select {
	case <-c.Done():
	default:
		t.Fatalf("%v is not answered", c.Header.Operation)
	}
	if c.Status != 0 || c.Evict != 0 {
		t.Fatalf("%v: status %v, eviction %v", c.Header.Operation, c.Status, c.Evict)
	}
}
