package node

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/service"
	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// rig is one life of a node on a disk in memory, driven call by call: replicas and logs are those of
// the server, only sockets and goroutines are missing, so that a run repeats with its seed.
type rig struct {
	*node
	mem    *vfs.Mem
	lock   vfs.File
	said   *bytes.Buffer // the log, from warnings up
	client wire.U128
	epoch  uint64 // of the client's session
	asked  uint64 // number of its last request
	writes uint64 // number of its last partition write
}

var le = binary.LittleEndian

var rigBirth = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixMicro()

var defaults = service.Defaults()

// rigConfig is the configuration of a small node.
func rigConfig(change func(*service.Config)) *service.Config {
	one := *defaults
	c := &one
	c.Journal.FileSize, c.Journal.Budget = 64<<10, 16<<20
	c.Storage.Reserve, c.Storage.LowWater = 64<<10, 0
	c.Limits.Memory = 128 << 20
	c.Node.Loops = 2
	if change != nil {
		change(c)
	}
	return c
}

// boot starts a node on mem. The error is that of a refused start.
func boot(mem *vfs.Mem, change func(*service.Config)) (*rig, error) {
	r, err := bootOn(mem.Mount(), change, true)
	if err == nil {
		r.mem = mem
	}
	return r, err
}

// bootOn starts a node on any file system, stepped or with the goroutines and clocks of a server.
func bootOn(fs vfs.FS, change func(*service.Config), stepped bool) (*rig, error) {
	r := &rig{said: &bytes.Buffer{}, client: wire.U128{Lo: 7, Hi: 1}}
	log := hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, Output: r.said, DisableTime: true, Mutex: &sync.Mutex{}})
	r.node = newNode(fs, rigConfig(change), log, prometheus.NewRegistry())
	r.makeRoot = func() (metadata.RootUser, error) {
		return metadata.RootUser{Name: "root", PasswordHash: "none"}, nil
	}
	if r.stepped = stepped; stepped {
		now := uint64(rigBirth)
		r.clock = func() uint64 { now++; return now }
	}
	var err error
	if r.lock, err = r.claim(); err != nil {
		return nil, err
	}
	if err = r.openRoles(); err != nil {
		return nil, err
	}
	r.follow()
	return r, nil
}

func mustBoot(t *testing.T, mem *vfs.Mem, change func(*service.Config)) *rig {
	t.Helper()
	r, err := boot(mem, change)
	if err != nil {
		t.Fatalf("boot: %v", err)
	}
	return r
}

// halt is a clean stop.
func (r *rig) halt() error {
	err := r.stop()
	_ = r.lock.Close()
	return err
}

// follow does what the goroutines of a replica do when the metadata changed.
func (r *rig) follow() {
	if r.stepped {
		r.partition.Follow()
	}
}

func (r *rig) loops() []*loop.Engine {
	return append([]*loop.Engine{r.metadata.Engine()}, r.partition.Engines()...)
}

// advance lets a second pass: background syncs, ticks, file work.
func (r *rig) advance() {
	for _, e := range r.loops() {
		_ = e.Advance()
		for e.Step() {
		}
	}
}

// checkpoint starts one on every loop; steps run it.
func (r *rig) checkpoint() {
	for _, e := range r.loops() {
		e.BeginCheckpoint()
	}
}

// steps runs at most n pieces of file work of each loop.
func (r *rig) steps(n int) {
	for _, e := range r.loops() {
		for range n {
			e.Step()
		}
	}
}

// answer is how a call ended.
type answer struct {
	open   bool // not answered
	status wire.Code
	result wire.Code // of a result section
	evict  wire.EvictionReason
	body   []byte
	op     uint64
}

// ok reports a success.
func (a *answer) ok() bool { return !a.open && a.status == 0 && a.result == 0 && a.evict == 0 }

// unknown reports that the outcome is open: the request may have taken effect or not.
func (a *answer) unknown() bool { return a.open || a.status == wire.CodeTransientNotCommitted }

func (a *answer) String() string {
	return fmt.Sprintf("open %v status %d result %d evict %d", a.open, a.status, a.result, a.evict)
}

// finished takes a call back. A stepped node has answered it by now or never will.
func (r *rig) finished(c *link.Call) *answer {
	limit := time.Duration(0)
	if !r.stepped {
		limit = 20 * time.Second
	}
	select {
	case <-c.Done():
	case <-time.After(limit):
		select {
		case <-c.Done():
		default:
			return &answer{open: true}
		}
	}
	a := &answer{status: c.Status, evict: c.Evict, op: c.Op, body: slices.Clone(c.Out)}
	if c.OutFrame != nil {
		a.body = slices.Clone(c.OutFrame.Bytes()[wire.HeaderSize:])
		c.OutFrame.Release()
	}
	return a
}

// register opens the client's session.
func (r *rig) register() *answer {
	c := link.NewCall()
	c.Group = wire.MetadataGroup
	c.Header = wire.RequestHeader{Operation: wire.OpRegister, Client: r.client}
	r.metadata.Serve(c)
	a := r.finished(c)
	if a.ok() {
		r.epoch = a.op
	}
	r.follow()
	return a
}

// change orders a metadata operation.
func (r *rig) change(op wire.Operation, body []byte) *answer {
	r.asked++
	c := link.NewCall()
	c.Group, c.Body = wire.MetadataGroup, body
	c.Header = wire.RequestHeader{Operation: op, Client: r.client, Session: r.epoch, Request: r.asked}
	r.metadata.Serve(c)
	a := r.finished(c)
	if a.ok() {
		var code *wire.Code
		payload, err := wire.DecodeResult(a.body)
		if err != nil {
			code = new(wire.Code)
			*code, _ = err.(wire.Code)
		}
		if a.body = payload; code != nil {
			a.result = *code
		}
	}
	r.follow()
	return a
}

// group resolves a partition as the front-door does; 0 if there is none.
func (r *rig) group(topic string, partition uint32) uint64 {
	t, code := r.metadata.View().Topic(wire.NamedID("s"), wire.NamedID(topic))
	if code != 0 {
		return 0
	}
	p, ok := t.Partition(partition)
	if !ok {
		return 0
	}
	return t.GroupID(&p)
}

func (r *rig) call(group uint64, op wire.Operation) *link.Call {
	c := link.NewCall()
	c.Group, c.MetadataOp = group, r.metadata.View().Op
	c.Header = wire.RequestHeader{Operation: op, Client: r.client, Session: r.epoch, Group: group}
	c.Connection = wire.U128{Lo: 99, Hi: r.epoch}
	return c
}

// sendCall is a SendMessages call as the front-door hands it over.
func (r *rig) sendCall(group uint64, batch []byte) *link.Call {
	const before = wire.HeaderSize + 64
	f, ok := r.pool.Try(before + len(batch))
	if !ok {
		panic("no buffer")
	}
	copy(f.Bytes()[before:], batch)
	c := r.call(group, wire.OpSendMessages)
	r.writes++
	c.Frame, c.Body, c.BodyStart, c.Sequence = f, f.Bytes()[before:], before, r.writes
	return c
}

// sent reads the base offset of a confirmed send.
func (a *answer) sent() uint64 { return binary.LittleEndian.Uint64(a.body[16:]) }

func (r *rig) send(group uint64, batch []byte) *answer {
	c := r.sendCall(group, batch)
	r.partition.Serve(c)
	return r.sendDone(c)
}

func (r *rig) sendDone(c *link.Call) *answer {
	a := r.finished(c)
	if !a.open && c.Frame != nil {
		c.Frame.Release()
	}
	return a
}

// sendTogether submits sends that reach their loop in one turn.
func (r *rig) sendTogether(group uint64, batches ...[]byte) []*answer {
	calls := make([]*link.Call, len(batches))
	for i, b := range batches {
		calls[i] = r.sendCall(group, b)
	}
	r.partition.Engine(group).Do(func() {
		for _, c := range calls {
			r.partition.Serve(c)
		}
	})
	out := make([]*answer, len(calls))
	for i, c := range calls {
		out[i] = r.sendDone(c)
	}
	return out
}

// consumer names whose offset is meant.
type consumer struct {
	kind wire.ConsumerKind
	id   uint32
}

func (r *rig) offsetCall(group uint64, op wire.Operation, who consumer, body []byte) *link.Call {
	c := r.call(group, op)
	r.writes++
	c.ConsumerKind, c.ConsumerID, c.Sequence, c.Body, c.BodyStart = who.kind, who.id, r.writes, body, wire.HeaderSize
	stream, topic, _, _ := wire.SplitGroupID(group)
	if g := r.metadata.View().GroupByKey(metadata.GroupKey{Stream: stream, Topic: topic, Group: who.id}); g != nil && who.kind == wire.ConsumerGroup {
		c.Generation = g.Generation
	}
	return c
}

func offsetTarget(topic string, partition uint32, who consumer) wire.OffsetTarget {
	return wire.OffsetTarget{
		Consumer: wire.Consumer{Kind: who.kind, ID: wire.NumericID(who.id)},
		Stream:   wire.NamedID("s"), Topic: wire.NamedID(topic), Partition: wire.SelectPartition(partition),
	}
}

func (r *rig) store(topic string, partition uint32, who consumer, offset uint64) *answer {
	body := wire.StoreOffsetRequest{OffsetTarget: offsetTarget(topic, partition, who), Offset: offset}.Append(nil)
	c := r.offsetCall(r.group(topic, partition), wire.OpStoreOffset, who, body)
	r.partition.Serve(c)
	return r.finished(c)
}

func (r *rig) dropOffset(topic string, partition uint32, who consumer) *answer {
	body := wire.DeleteOffsetRequest{OffsetTarget: offsetTarget(topic, partition, who)}.Append(nil)
	c := r.offsetCall(r.group(topic, partition), wire.OpDeleteOffset, who, body)
	r.partition.Serve(c)
	return r.finished(c)
}

// offset reads a stored offset.
func (r *rig) offset(topic string, partition uint32, who consumer) (uint64, bool) {
	c := r.offsetCall(r.group(topic, partition), wire.OpNonReplicated, who, offsetTarget(topic, partition, who).Append(nil))
	c.Header.Code = wire.CmdGetOffset
	r.partition.Serve(c)
	a := r.finished(c)
	if !a.ok() || len(a.body) < 20 {
		return 0, false
	}
	return binary.LittleEndian.Uint64(a.body[12:]), true
}

// polled is one message as a consumer sees it.
type polled struct {
	offset  uint64
	payload []byte
}

func (r *rig) poll(topic string, partition uint32, who consumer, at wire.Strategy, count uint32, commit bool) ([]polled, *answer) {
	t := offsetTarget(topic, partition, who)
	body := wire.PollMessagesRequest{
		Consumer: t.Consumer, Stream: t.Stream, Topic: t.Topic, Partition: t.Partition,
		Strategy: at, Count: count, AutoCommit: commit,
	}.Append(nil)
	c := r.offsetCall(r.group(topic, partition), wire.OpNonReplicated, who, body)
	c.Header.Code = wire.CmdPollMessages
	r.partition.Serve(c)
	a := r.finished(c)
	if !a.ok() {
		return nil, a
	}
	return unbatch(a.body[16:]), a
}

// unbatch lists the messages of a poll reply; a batch that does not verify becomes one with no payload.
func unbatch(b []byte) (all []polled) {
	for len(b) >= 256 {
		size := le.Uint64(b[32:])
		if size < 256 || size > uint64(len(b)) || wire.VerifyBatch(b[:size]) != nil {
			return append(all, polled{})
		}
		var h wire.BatchHeader
		h.Decode(b)
		for m := b[256:size]; len(m) >= 48; {
			head, n := le.Uint32(m[32:]), le.Uint32(m[36:])
			all = append(all, polled{h.BaseOffset + uint64(le.Uint32(m[24:])), m[48 : 48+n]})
			m = m[48+head+n:]
		}
		b = b[size:]
	}
	return all
}

// batch makes a sealed batch of the given payloads.
func batch(payloads ...[]byte) []byte {
	b := make([]byte, 256)
	for i, p := range payloads {
		m := make([]byte, 48, 48+len(p))
		le.PutUint64(m[8:], 1)
		le.PutUint32(m[24:], uint32(i))
		le.PutUint32(m[36:], uint32(len(p)))
		m = append(m, p...)
		le.PutUint64(m, wire.Hash64(m[8:]))
		b = append(b, m...)
	}
	le.PutUint64(b[24:], uint64(rigBirth))
	le.PutUint64(b[32:], uint64(len(b)))
	le.PutUint32(b[48:], uint32(len(payloads)))
	sums := append(slices.Clone(b[:40]), b[48:52]...)
	for m := b[256:]; len(m) > 0; m = m[48+le.Uint32(m[36:]):] {
		sums = append(sums, m[:8]...)
	}
	le.PutUint64(b[40:], wire.Hash64(sums))
	return b
}

// payload is the content of message number n, of the given size (at least 1): it tells its number,
// lowest digit first.
func payload(n uint32, size int) []byte {
	digits := []byte(fmt.Sprintf("%08d|", n))
	slices.Reverse(digits[:8])
	return bytes.Repeat(digits, size/9+1)[:size]
}

// metric is the value of a counter or gauge.
func (r *rig) metric(name string) float64 {
	families, _ := r.registry.Gather()
	for _, f := range families {
		if f.GetName() == name {
			sum := 0.0
			for _, m := range f.GetMetric() {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
			return sum
		}
	}
	return 0
}

func (r *rig) logged(text string) bool { return strings.Contains(r.said.String(), text) }
