package vsr_test

import (
	"fmt"
	"strings"

	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// stage is one replica with a journal of headers around it. Completions are given by hand, so that
// a scenario decides their order. Groups of several members are played by a troupe.
type stage struct {
	group   vsr.Group
	limits  vsr.Limits
	replica *vsr.Replica
	now     uint64
	floor   uint64

	log     []wire.PrepareHeader // op i+1 at i
	written uint64
	synced  uint64
	applied uint64

	in  vsr.Input
	out vsr.Output
	txt strings.Builder

	troupe *troupe // scenarios of several members
	ballot ballot  // scenarios of the merge alone
}

func newStage() *stage { return &stage{now: 1000} }

// run executes one line of a scenario and returns what it says.
func (s *stage) run(line string) string {
	switch w := split(line); {
	case w.command == "cluster":
		s.troupe = newTroupe(w)
		return ""
	case s.troupe != nil:
		return s.troupe.run(line)
	case w.command == "report" || w.command == "merge":
		return s.ballot.run(w, line)
	}
	s.txt.Reset()
	command, a := parse(line)
	s.now = a.or("now", s.now)
	switch command {
	case "group":
		s.create(a)
	case "propose":
		s.propose(a)
	case "write":
		s.complete(vsr.InputWritten, &s.written, a)
	case "sync":
		s.written = max(s.written, a.or("to", s.written))
		s.complete(vsr.InputSynced, &s.synced, a)
	case "fail-write":
		s.failWrite(a)
	case "rollback":
		s.replica.Rollback(a["op"])
		s.cut(a["op"])
		s.state()
	case "restart":
		s.restart(a)
	case "tick":
		s.in = vsr.Input{Kind: vsr.InputTick, Now: s.now}
		s.step()
	case "applied":
		s.in = vsr.Input{Kind: vsr.InputApplied, Now: s.now, Op: a["op"]}
		s.step()
	case "state":
		s.state()
	case "log":
		s.printLog()
	default:
		panic("unknown command " + command)
	}
	if s.txt.Len() == 0 {
		return "nothing\n"
	}
	return s.txt.String()
}

func (s *stage) say(format string, args ...any) { fmt.Fprintf(&s.txt, format+"\n", args...) }

func (s *stage) create(a arguments) {
	s.group = vsr.Group{
		ID: a.or("id", wire.GroupID(1, 2, 3, 0)), Cluster: wire.ClusterID("scenario"),
		Self: uint8(a["self"]), Members: uint8(a.or("members", 1)),
		Policy: vsr.Policy{SealBody: a["metadata"] == 1, Incarnation: a["metadata"] == 1, Synced: a["synced"] == 1},
	}
	s.limits = vsr.Limits{Pipeline: int(a["pipeline"])}
	s.log, s.written, s.synced, s.applied = nil, 0, 0, 0
	s.floor = a["born"]
	s.replica = vsr.New(s.group, s.limits, vsr.Boot{State: vsr.Born, TimeFloor: s.floor})
	s.state()
}

func (s *stage) propose(a arguments) {
	for range a.or("times", 1) {
		s.in = vsr.Input{Kind: vsr.InputRequest, Now: s.now, Body: vsr.Body(a["body"]), BodyHash: a["hash"], Request: vsr.Request{
			Operation: wire.Operation(a.or("operation", uint64(wire.OpSendMessages))), Client: wire.U128{Lo: a["client"]},
			Request: a["request"], UserID: uint32(a["user"]), Size: uint32(a.or("size", 512)),
		}}
		s.step()
	}
}

func (s *stage) complete(kind vsr.InputKind, mark *uint64, a arguments) {
	op := a.or("to", uint64(len(s.log)))
	*mark = max(*mark, min(op, uint64(len(s.log))))
	if a["unheard"] == 1 { // on disk, but the process ends before it learns
		return
	}
	s.in = vsr.Input{Kind: kind, Now: s.now, Op: op}
	s.step()
}

func (s *stage) failWrite(a arguments) {
	s.in = vsr.Input{Kind: vsr.InputWriteFailed, Now: s.now, Op: a["op"], SyncLost: a["sync-lost"] == 1}
	s.step()
}

// restart loses what was not written, or with power=1 what was not synced.
func (s *stage) restart(a arguments) {
	head := s.written
	if a["power"] == 1 {
		head = s.synced
	}
	s.log = s.log[:head]
	s.written, s.synced = head, min(s.synced, head)
	if s.group.Policy.Synced {
		s.synced = head // the duty of whoever recovers the log
	}
	boot := vsr.Boot{View: uint32(a["view"]), LogView: uint32(a["view"]), Head: head, Commit: min(s.applied, head), TimeFloor: s.floor}
	if head > 0 && a["headless"] == 0 {
		boot.Tail = append(boot.Tail, s.log[head-1])
	}
	s.replica = vsr.New(s.group, s.limits, boot)
	s.applied = s.replica.Commit()
	s.state()
}

// step steps the replica, carries out the effects and says them.
func (s *stage) step() {
	s.out.Reset()
	s.replica.Step(&s.in, &s.out)
	if op := s.out.Truncate; op != 0 {
		s.say("truncate %d", op)
		s.cut(op)
	}
	for i := range s.out.Append {
		h := s.out.Append[i].Header
		s.log = append(s.log, h)
		s.say("append %s", describe(&h))
	}
	for _, r := range s.out.Refused {
		s.say("refuse body=%d op=%d code=%d why=%v", r.Body, r.Op, uint32(r.Code), r.Why)
	}
	if s.out.Role.Changed {
		s.say("role primary=%v view=%d", s.out.Role.Primary, s.out.Role.View)
	}
	if s.out.Fault != vsr.FaultNone {
		s.say("fault %v", s.out.Fault)
	}
	if s.out.Commit != 0 {
		s.say("commit %d", s.out.Commit)
		s.applied = s.out.Commit
		s.in = vsr.Input{Kind: vsr.InputApplied, Now: s.now, Op: s.out.Commit}
		s.step()
	}
}

func (s *stage) cut(op uint64) {
	s.log = s.log[:op-1]
	s.written, s.synced = min(s.written, op-1), min(s.synced, op-1)
}

func (s *stage) state() {
	r := s.replica
	h := r.Head()
	s.say("view=%d head=%d commit=%d applied=%d primary=%v floor=%d", r.View(), h.Op, r.Commit(), r.Applied(), r.Primary(), r.TimeFloor())
}

func (s *stage) printLog() {
	for i := range s.log {
		s.say("%s", describe(&s.log[i]))
	}
}

// describe is one line about a prepare. Identities are named by what they belong to.
func describe(h *wire.PrepareHeader) string {
	sealed := "sealed"
	if h.Verify() != nil {
		sealed = "NOT SEALED"
	}
	return fmt.Sprintf("op=%d %v time=%d commit=%d size=%d id=%04x parent=%04x body=%04x %s",
		h.Op, h.Operation, h.Timestamp, h.Commit, h.Size, h.Checksum.Lo>>48, h.Parent.Lo>>48, h.ChecksumBody.Lo&0xffff, sealed)
}
