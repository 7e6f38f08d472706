package node

import (
	"fmt"
	"os"
	"testing"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// run is one execution of the recorded workload. It stops by itself at the crash point: from there on
// no answer comes, and what was open then may have taken effect or not.
type run struct {
	*world
	*rig
	mem       *vfs.Mem
	persisted bool // topics acknowledge what is synced
	acks      int
	broken    error // an answer that must not be
}

func (x *run) dead() bool { return x.broken != nil || x.mem.Crashed() || x.rig == nil }

func (x *run) wrong(what string, a *answer) {
	if x.broken == nil {
		x.broken = fmt.Errorf("%s: %v", what, a)
	}
}

// start boots the node and opens the client's session.
func (x *run) start() {
	if x.mem.Crashed() {
		return
	}
	r, err := boot(x.mem, nil)
	if err != nil {
		if !x.mem.Crashed() {
			x.broken = err
		}
		x.rig = nil
		return
	}
	x.rig = r
	r.asked = x.requests
	x.note(r, &answer{})
	a := r.register()
	x.metadataDone("register", a)
}

// metadataDone notes the outcome of a metadata op.
func (x *run) metadataDone(what string, a *answer) {
	x.requests = x.rig.asked
	switch {
	case a.ok():
		x.acks++
		x.note(x.rig, a)
	case !a.unknown() || !x.mem.Crashed():
		if !x.mem.Crashed() {
			x.wrong(what, a)
		}
	}
}

func (x *run) do(what string, op wire.Operation, body []byte) {
	if x.dead() {
		return
	}
	x.metadataDone(what, x.change(op, body))
}

func (x *run) createTopic(name string, partitions uint32) {
	block := wire.AppendOption(nil, wire.OptionSegmentSize, wire.KindString, []byte("1 MiB"))
	if x.persisted {
		block = wire.AppendOption(block, wire.OptionEnforceFsync, wire.KindBool, []byte{1})
	}
	x.do("create topic", wire.OpCreateTopic, wire.CreateTopicRequest{
		Stream: wire.NamedID("s"), PartitionsCount: partitions, Name: []byte(name), Options: block,
	}.Append(nil))
}

func topicTarget(name string) []byte {
	return wire.TopicTarget{Stream: wire.NamedID("s"), Topic: wire.NamedID(name)}.Append(nil)
}

// messages makes the content of one batch.
func (x *run) messages(sizes ...int) (b []byte, e effect) {
	var all [][]byte
	for _, size := range sizes {
		x.next++
		all = append(all, payload(x.next, size))
		e.sent = append(e.sent, message{x.next, size})
	}
	return batch(all...), e
}

// settle takes the outcome of a partition op into the model.
func (x *run) settle(what string, p *part, e effect, a *answer) {
	switch {
	case a.ok():
		p.past = append(p.past, e)
		p.acked = len(p.past)
		x.acks++
	case x.mem.Crashed():
		p.past = append(p.past, e)
	default:
		x.wrong(what, a)
	}
}

func (x *run) part(topic string, partition uint32) (uint64, *part) {
	id := x.group(topic, partition)
	return id, x.parts[id]
}

func (x *run) produce(topic string, partition uint32, sizes ...int) {
	if x.dead() {
		return
	}
	id, p := x.part(topic, partition)
	b, e := x.messages(sizes...)
	a := x.send(id, b)
	if a.ok() {
		if want := uint64(len(p.after(len(p.past)).messages)); a.sent() != want {
			x.broken = fmt.Errorf("send to %s/%d got offset %d, want %d", topic, partition, a.sent(), want)
		}
	}
	x.settle("send", p, e, a)
}

// produceTogether sends one-message batches that share a turn.
func (x *run) produceTogether(topic string, partition uint32, sizes ...int) {
	if x.dead() {
		return
	}
	id, p := x.part(topic, partition)
	var batches [][]byte
	var effects []effect
	for _, size := range sizes {
		b, e := x.messages(size)
		batches, effects = append(batches, b), append(effects, e)
	}
	for i, a := range x.sendTogether(id, batches...) {
		x.settle("send", p, effects[i], a)
	}
}

func (x *run) commit(topic string, partition uint32, who consumer, offset uint64) {
	if x.dead() {
		return
	}
	x.who[who] = true
	_, p := x.part(topic, partition)
	x.settle("store offset", p, effect{who: who, at: offset}, x.store(topic, partition, who, offset))
}

func (x *run) forget(topic string, partition uint32, who consumer) {
	if x.dead() {
		return
	}
	_, p := x.part(topic, partition)
	x.settle("delete offset", p, effect{who: who, drop: true}, x.dropOffset(topic, partition, who))
}

// consume polls with auto-commit. Its offset is acknowledged to nobody: an answer at the crash says
// nothing about it.
func (x *run) consume(topic string, partition uint32, who consumer, count uint32) {
	if x.dead() {
		return
	}
	x.who[who] = true
	_, p := x.part(topic, partition)
	got, a := x.poll(topic, partition, who, wire.Strategy{Kind: wire.StrategyNext}, count, true)
	if len(got) == 0 {
		if !x.mem.Crashed() {
			x.wrong("poll", a)
		}
		return
	}
	e := effect{who: who, at: got[len(got)-1].offset, raise: true}
	if x.mem.Crashed() {
		a.open = true
	}
	x.settle("poll", p, e, a)
}

// second lets one pass: everything acknowledged is synced after it.
func (x *run) second() {
	if x.dead() {
		return
	}
	x.advance()
	if !x.mem.Crashed() {
		for _, p := range x.parts {
			p.synced = p.acked
		}
	}
}

func (x *run) trim(topic string, partition, count uint32) {
	if x.dead() {
		return
	}
	id := x.group(topic, partition)
	c := link.NewCall()
	c.Internal, c.Group = link.InternalSealed, id
	c.Body = le.AppendUint32(le.AppendUint64(nil, id), count)
	x.partition.Serve(c)
	a := x.finished(c)
	if a.open || len(a.body) < 8 {
		if !x.mem.Crashed() {
			x.wrong("sealed", a)
		}
		return
	}
	end := le.Uint64(a.body)
	if end == 0 {
		x.wrong("no sealed segment", a)
		return
	}
	x.do("delete segments", wire.OpTruncatePartition, wire.LoggedTruncatePartition{
		Stream: wire.NamedID("s"), Topic: wire.NamedID(topic), Partition: partition, UpToOffset: end,
	}.Append(nil))
}

func (x *run) restart() {
	if x.dead() {
		return
	}
	if err := x.halt(); err != nil && !x.mem.Crashed() {
		x.broken = err
	}
	if !x.mem.Crashed() {
		for _, p := range x.parts {
			p.synced = p.acked
		}
	}
	x.start()
}

func (x *run) between(f func()) {
	if !x.dead() {
		f()
	}
}

var (
	alice = consumer{wire.ConsumerSingle, 1}
	bob   = consumer{wire.ConsumerSingle, 2}
)

// workload is the recorded one. Everything a log or a file of a data directory can be made to do is in it.
func (x *run) workload() {
	const big = 200_000
	x.start()
	x.do("create stream", wire.OpCreateStream, wire.CreateStreamRequest{Name: []byte("s")}.Append(nil))
	x.createTopic("t", 2)
	x.createTopic("u", 1)
	x.produce("t", 0, 1)
	x.produce("t", 0, 10, 100, 1000)
	x.produceTogether("t", 1, 5, 500, 5000, 70_000)
	x.commit("t", 0, alice, 1)
	x.produce("t", 0, 60_000)
	x.between(func() { x.checkpoint() })
	x.produce("t", 0, big)
	x.between(func() { x.steps(1) })
	x.produceTogether("t", 0, 3, big, 4, big)
	x.do("create group", wire.OpCreateGroup, wire.CreateGroupRequest{Stream: wire.NamedID("s"), Topic: wire.NamedID("t"), Name: []byte("g")}.Append(nil))
	x.do("join", wire.OpJoinGroup, groupTarget("t", "g"))
	x.consume("t", 0, consumer{wire.ConsumerGroup, 0}, 3)
	x.second()
	x.produce("t", 0, big)
	x.produce("t", 0, big, 20)
	x.produceTogether("t", 0, big, 30, 31, 32)
	x.produce("t", 0, 7)
	x.commit("t", 0, alice, 5)
	x.consume("t", 1, bob, 2)
	x.between(func() { x.checkpoint(); x.steps(9) })
	x.forget("t", 1, bob)
	x.commit("t", 0, alice, 10)
	x.consume("t", 0, consumer{wire.ConsumerGroup, 0}, 100)
	x.produce("u", 0, 100, 200)
	x.trim("t", 0, 1)
	x.produce("t", 0, 65_000, 900)
	x.between(func() { x.steps(1) })
	x.produce("t", 0, big)
	x.second()
	x.do("purge", wire.OpPurgeTopic, topicTarget("t"))
	x.produce("t", 0, 50)
	x.produceTogether("t", 1, 60_000, big, 60)
	x.restart()
	x.commit("t", 0, bob, 0)
	x.produce("t", 0, big)
	x.do("delete topic", wire.OpDeleteTopic, topicTarget("u"))
	x.createTopic("u", 1)
	x.produceTogether("u", 0, 11, 66_000, 12)
	x.consume("u", 0, alice, 1)
	x.between(func() { x.checkpoint() })
	x.produce("u", 0, big)
	x.between(func() { x.steps(9) })
	x.do("leave", wire.OpLeaveGroup, groupTarget("t", "g"))
	x.do("delete group", wire.OpDeleteGroup, groupTarget("t", "g"))
	x.produce("u", 0, 33)
	x.second()
	x.produce("t", 1, 1)
	x.commit("u", 0, alice, 4)
	x.do("purge stream", wire.OpPurgeStream, wire.StreamTarget{Stream: wire.NamedID("s")}.Append(nil))
	x.produce("u", 0, 34)
	x.produce("t", 1, 70_000)
	x.restart()
	x.produce("u", 0, 35)
}

func groupTarget(topic, group string) []byte {
	return wire.GroupTarget{Stream: wire.NamedID("s"), Topic: wire.NamedID(topic), Group: wire.NamedID(group)}.Append(nil)
}

// birth is the disk of a node that was started and stopped once.
func birth(t testing.TB) *vfs.Mem {
	t.Helper()
	mem := vfs.NewMem(1)
	r, err := boot(mem, nil)
	if err == nil {
		err = r.halt()
	}
	if err != nil {
		t.Fatal(err)
	}
	return mem
}

// execute runs the workload on a copy of base, up to mutating call k (0: to its end).
func execute(base *vfs.Mem, seed uint64, k int, power, persisted bool) *run {
	x := &run{world: newWorld(), mem: base.Clone(seed), persisted: persisted}
	x.requests = 1
	x.mem.CrashAt(k, power)
	x.workload()
	return x
}

// recovered boots the node after the crash, compares it with the model, lets it work and stop, and
// compares again.
func (x *run) recovered(reference map[uint64]uint64, lossy bool, end func(*rig) error) (lost int, err error) {
	if x.broken != nil {
		return 0, x.broken
	}
	r, err := boot(x.mem, nil)
	if err != nil {
		return 0, fmt.Errorf("boot: %w", err)
	}
	if lost, err = x.check(r, reference, lossy); err != nil {
		return lost, err
	}
	suspect := r.metric("whippet_accepted_loss_starts_total") > 0
	if lost > 0 && !(suspect && r.logged("may be lost")) {
		return lost, fmt.Errorf("%d acknowledged changes are lost and neither log nor metric says so", lost)
	}
	if !r.evidence.Suspect && (suspect || r.said.Len() > 0) {
		return lost, fmt.Errorf("nothing was lost, but the log says: %s", r.said)
	}
	return lost, x.goOn(r, end)
}

// goOn works on the recovered node, ends it, starts it and looks whether everything is there.
func (x *run) goOn(r *rig, end func(*rig) error) error {
	x.rig, r.asked = r, x.requests+1
	if a := r.register(); !a.ok() {
		return fmt.Errorf("register after recovery: %v", a)
	}
	var where []*part
	for _, s := range r.metadata.View().Streams() {
		for _, t := range s.Topics() {
			for _, p := range t.AllPartitions() {
				x.produce(t.Name, p.ID, 10, 100_000)
				where = append(where, x.parts[t.GroupID(&p)])
			}
		}
	}
	if x.broken != nil {
		return fmt.Errorf("after recovery: %w", x.broken)
	}
	if err := end(r); err != nil {
		return fmt.Errorf("stop after recovery: %w", err)
	}
	again, err := boot(x.mem, nil)
	if err != nil {
		return fmt.Errorf("second boot: %w", err)
	}
	for _, p := range where {
		f, err := again.read(p.topic, p.number, x.consumers())
		if err == nil {
			_, err = p.judge(f, len(p.past), ^uint64(0)>>1)
		}
		if err != nil {
			return fmt.Errorf("second boot: %w", err)
		}
	}
	if again.said.Len() > 0 && !again.evidence.Suspect {
		return fmt.Errorf("second boot says: %s", again.said)
	}
	return nil
}

// killed ends a node by SIGKILL.
func killed(r *rig) error {
	r.mem.Kill()
	return nil
}

// cutLater ends a node by a power cut, one background sync after its last request.
func cutLater(r *rig) error {
	r.advance()
	r.mem.PowerCut()
	return nil
}

// crashAll crashes the workload at every mutating call and returns how many there are.
func crashAll(t *testing.T, power, persisted, lossy bool) {
	base := birth(t)
	whole := execute(base, 1, 0, power, persisted)
	if whole.broken != nil {
		t.Fatal(whole.broken)
	}
	points := whole.mem.Calls()
	seeds := uint64(1)
	if os.Getenv("SOAK") != "" {
		seeds = 20
	}
	step := 1
	if testing.Short() {
		step = 23 // under the race detector: a sample of what a full run enumerates
	}
	lossyRuns, lostChanges := 0, 0
	for seed := uint64(1); seed <= seeds; seed++ {
		for k := 1; k <= points; k += step {
			x := execute(base, seed*1000+uint64(k), k, power, persisted)
			if !x.mem.Crashed() && x.broken == nil {
				t.Fatalf("call %d of %d was not reached", k, points)
			}
			x.mem.Restart()
			end := [...]func(*rig) error{(*rig).halt, cutLater, killed}[k%3]
			lost, err := x.recovered(whole.views, lossy, end)
			if err != nil {
				t.Fatalf("crash at call %d of %d (seed %d, %d acknowledged): %v", k, points, seed*1000+uint64(k), x.acks, err)
			}
			if lost > 0 {
				lossyRuns, lostChanges = lossyRuns+1, lostChanges+lost
			}
		}
	}
	t.Logf("%d crash points × %d seeds, %d acknowledged requests in the workload; runs with acknowledged loss %d (%d changes)",
		points, seeds, whole.acks, lossyRuns, lostChanges)
}

func TestPowerCutAtEveryCallWithFsync(t *testing.T)    { crashAll(t, true, true, false) }
func TestKillAtEveryCall(t *testing.T)                 { crashAll(t, false, false, false) }
func TestPowerCutAtEveryCallWithoutFsync(t *testing.T) { crashAll(t, true, false, true) }
