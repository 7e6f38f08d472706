package partitionreplica

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
	metadatareplica "github.com/whippet-mq/whippet/services/metadata-replica"
)

// world is a partition replica over a metadata replica on a disk in memory. Unless real, both are
// driven step by step: a call is answered when Serve returns.
type world struct {
	*Replica
	t       *testing.T
	fs      vfs.FS
	meta    *metadatareplica.Replica
	session uint64
	writes  uint64
}

// requests numbers metadata requests; a client goes on with its numbers over restarts.
var requests atomic.Uint64

// now is the clock of all worlds, in µs.
var now atomic.Uint64

var admin = wire.U128{Lo: 1, Hi: 1}

func open(t *testing.T, mem vfs.FS, real bool) *world {
	t.Helper()
	engine := loop.EngineOptions{
		Limits: loop.Limits{Pipeline: 32, Queue: 64}, FileSize: 256 << 10, Budget: 8 << 20, Reserve: 256 << 10, Workers: 2, Stepped: !real,
		Clock: func() uint64 { return now.Add(1) },
	}
	log := hclog.NewNullLogger()
	w := &world{t: t, fs: mem}
	var err error
	w.meta, err = metadatareplica.Open(metadatareplica.Config{SessionClaim: time.Hour, Rebalance: time.Hour, Engine: engine}, metadatareplica.Deps{
		FS: mem, Log: log, Registry: prometheus.NewRegistry(),
		Root: func() (metadata.RootUser, error) { return metadata.RootUser{Name: "root", PasswordHash: "none"}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	engine.Owner.Loop = 1
	w.Replica, err = Open(Config{Loops: 1, MaxFrame: 64 << 20, MaxOffsets: 4096, Engine: engine}, Deps{
		FS: mem, Follower: w.meta, Pool: buffer.NewPool(256 << 20), Log: log, Registry: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.meta.Partitions = w.Replica
	w.meta.Start()
	w.Replica.Start()
	w.session = w.order(&link.Call{Header: wire.RequestHeader{Operation: wire.OpRegister}}).Op
	return w
}

func (w *world) close() {
	w.t.Helper()
	if err := w.Replica.Close(10 * time.Second); err != nil {
		w.t.Fatal(err)
	}
	if err := w.meta.Stop(10 * time.Second); err != nil {
		w.t.Fatal(err)
	}
}

// order puts a request of the admin into the metadata log.
func (w *world) order(q *link.Call) *link.Call {
	w.t.Helper()
	return w.orderAs(admin, w.session, q)
}

func (w *world) orderAs(client wire.U128, session uint64, q *link.Call) *link.Call {
	w.t.Helper()
	c := link.NewCall()
	c.Group, c.Header, c.Body = wire.MetadataGroup, q.Header, q.Body
	c.Header.Client, c.Header.Session, c.Header.Request = client, session, requests.Add(1)
	w.meta.Serve(c)
	<-c.Done()
	if c.Status != 0 || c.Evict != 0 {
		w.t.Fatalf("%v: status %v, eviction %v", c.Header.Operation, c.Status, c.Evict)
	}
	if len(c.Out) > 0 {
		if _, err := wire.DecodeResult(c.Out); err != nil {
			w.t.Fatalf("%v: %v", c.Header.Operation, err)
		}
	}
	if w.config.Engine.Stepped {
		w.Follow()
	}
	return c
}

func (w *world) change(op wire.Operation, body []byte) *link.Call {
	w.t.Helper()
	return w.order(&link.Call{Header: wire.RequestHeader{Operation: op}, Body: body})
}

// topic makes topic "t" in stream "s".
func (w *world) topic(partitions uint32) {
	w.t.Helper()
	w.change(wire.OpCreateStream, wire.CreateStreamRequest{Name: []byte("s")}.Append(nil))
	w.change(wire.OpCreateTopic, wire.CreateTopicRequest{
		Stream: wire.NamedID("s"), PartitionsCount: partitions, Name: []byte("t"),
	}.Append(nil))
}

func (w *world) purge() {
	w.t.Helper()
	w.change(wire.OpPurgeTopic, wire.TopicTarget{Stream: wire.NamedID("s"), Topic: wire.NamedID("t")}.Append(nil))
}

func (w *world) group(partition uint32) uint64 {
	t, _ := w.meta.View().Topic(wire.NamedID("s"), wire.NamedID("t"))
	p, _ := t.Partition(partition)
	return t.GroupID(&p)
}

func (w *world) call(op wire.Operation, partition uint32) *link.Call {
	c := link.NewCall()
	c.Group, c.MetadataOp = w.group(partition), w.meta.View().Op
	c.Header = wire.RequestHeader{Operation: op, Client: admin, Session: w.session}
	c.Connection = wire.U128{Lo: 5, Hi: w.session}
	w.writes++
	c.Sequence = w.writes
	return c
}

func (w *world) sendCall(partition uint32, payload string) *link.Call {
	w.t.Helper()
	batch, err := wire.AppendBatch(nil, []wire.NewMessage{{Payload: []byte(payload)}})
	if err != nil {
		w.t.Fatal(err)
	}
	c := w.call(wire.OpSendMessages, partition)
	c.Frame, _ = w.pool.Try(wire.HeaderSize + len(batch))
	c.Body, c.BodyStart = c.Frame.Bytes()[wire.HeaderSize:], wire.HeaderSize
	copy(c.Body, batch)
	return c
}

// serve makes a call and returns it answered; it fails the test when nobody answers.
func (w *world) serve(c *link.Call) *link.Call {
	w.t.Helper()
	w.Serve(c)
	return w.wait(c)
}

func (w *world) wait(c *link.Call) *link.Call {
	w.t.Helper()
	select {
	case <-c.Done():
	case <-time.After(20 * time.Second):
		w.t.Fatalf("%v is never answered", c.Header.Operation)
	}
	if c.Frame != nil {
		c.Frame.Release()
	}
	return c
}

func (w *world) send(partition uint32, payload string) *link.Call {
	w.t.Helper()
	return w.serve(w.sendCall(partition, payload))
}

// target names the offset of plain consumer id.
func target(k offsetKey, partition uint32) wire.OffsetTarget {
	return wire.OffsetTarget{
		Consumer: wire.Consumer{Kind: k.kind, ID: wire.NumericID(k.id)},
		Stream:   wire.NamedID("s"), Topic: wire.NamedID("t"), Partition: wire.SelectPartition(partition),
	}
}

func (w *world) storeCall(k offsetKey, partition uint32, offset uint64) *link.Call {
	c := w.call(wire.OpStoreOffset, partition)
	c.ConsumerKind, c.ConsumerID = k.kind, k.id
	c.Body, c.BodyStart = wire.StoreOffsetRequest{OffsetTarget: target(k, partition), Offset: offset}.Append(nil), wire.HeaderSize
	return c
}

func (w *world) pollCall(k offsetKey, partition uint32, count uint32, commit bool) *link.Call {
	c := w.call(wire.OpNonReplicated, partition)
	c.Header.Code = wire.CmdPollMessages
	c.ConsumerKind, c.ConsumerID = k.kind, k.id
	at := target(k, partition)
	c.Body = wire.PollMessagesRequest{
		Consumer: at.Consumer, Stream: at.Stream, Topic: at.Topic, Partition: at.Partition,
		Strategy: wire.Strategy{Kind: wire.StrategyNext}, Count: count, AutoCommit: commit,
	}.Append(nil)
	return c
}

// poll returns how many messages the consumer got.
func (w *world) poll(k offsetKey, partition uint32, count uint32, commit bool) uint32 {
	w.t.Helper()
	return w.polled(w.serve(w.pollCall(k, partition, count, commit)))
}

func (w *world) polled(c *link.Call) uint32 {
	w.t.Helper()
	if c.Status != 0 {
		w.t.Fatalf("poll: status %v", c.Status)
	}
	if c.OutFrame == nil {
		return 0
	}
	defer c.OutFrame.Release()
	b := c.OutFrame.Bytes()[wire.HeaderSize+12:]
	return uint32(b[0]) | uint32(b[1])<<8
}

func plain(id uint32) offsetKey { return offsetKey{wire.ConsumerSingle, id} }
