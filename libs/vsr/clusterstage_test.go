package vsr_test

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// troupe plays scenarios of several members. A command is a word, then a member or a link (2, 0>1),
// then key=value words.
type troupe struct {
	*cluster
	txt     strings.Builder
	request uint64
	lose    map[string]bool // "kind from>to" with * for any
	hold    map[string]bool
}

// words are the parts of a command line.
type words struct {
	command string
	who     string
	value   map[string]string
}

func split(line string) words {
	w := words{value: map[string]string{}}
	for i, field := range strings.Fields(line) {
		key, value, found := strings.Cut(field, "=")
		switch {
		case i == 0:
			w.command = field
		case found:
			w.value[key] = value
		case i == 1:
			w.who = field
		default:
			w.value[key] = "1"
		}
	}
	return w
}

func (w *words) number(key string, or uint64) uint64 {
	text, ok := w.value[key]
	if !ok {
		return or
	}
	n, err := strconv.ParseUint(text, 0, 64)
	must(err)
	return n
}

func (w *words) has(key string) bool { return w.value[key] != "" || w.who == key }

func (w *words) member() uint8 {
	n, err := strconv.ParseUint(w.who, 10, 8)
	must(err)
	return uint8(n)
}

// link reads "0>1".
func (w *words) link() [2]uint8 {
	var from, to uint8
	_, err := fmt.Sscanf(w.who, "%d>%d", &from, &to)
	must(err)
	return [2]uint8{from, to}
}

func newTroupe(w words) *troupe {
	t := &troupe{lose: map[string]bool{}, hold: map[string]bool{}}
	state := vsr.Born
	if w.has("empty") {
		state = vsr.Empty
	}
	id := wire.GroupID(1, 2, 3, 0)
	if w.has("metadata") {
		id = wire.MetadataGroup
	}
	g := vsr.Group{
		ID: id, Cluster: wire.ClusterID("scenario"), Members: uint8(w.number("members", 3)),
		Policy: vsr.Policy{SealBody: w.has("metadata"), Incarnation: w.has("metadata"), Synced: w.has("synced") || w.has("metadata")},
	}
	t.cluster = newCluster(g, vsr.Limits{Pipeline: int(w.number("pipeline", 0))}, state, func(format string, args ...any) {
		fmt.Fprintf(&t.txt, format+"\n", args...)
	})
	t.lost = func(p *packet) bool { return matches(t.lose, p) }
	t.held = func(p *packet) bool { return matches(t.hold, p) }
	return t
}

// matches reports whether a rule of the scenario speaks of the frame.
func matches(rules map[string]bool, p *packet) bool {
	kind := p.header.Command().String()
	link := fmt.Sprintf("%d>%d", p.from, p.to)
	for _, k := range []string{kind, "*"} {
		for _, l := range []string{link, "*", fmt.Sprintf("*>%d", p.to), fmt.Sprintf("%d>*", p.from)} {
			if rules[k+" "+l] {
				return true
			}
		}
	}
	return false
}

// run executes one line and returns what happened.
func (t *troupe) run(line string) string {
	t.txt.Reset()
	w := split(line)
	command, ok := commands[w.command]
	if !ok {
		panic("unknown command " + line)
	}
	command(t, &w)
	return t.txt.String()
}

var commands map[string]func(*troupe, *words)

func init() {
	commands = map[string]func(*troupe, *words){
		"quiet":     func(t *troupe, w *words) { t.quiet = true },
		"loud":      func(t *troupe, w *words) { t.quiet = false },
		"propose":   (*troupe).proposeLine,
		"settle":    func(t *troupe, w *words) { t.settle() },
		"wait":      func(t *troupe, w *words) { t.pass(vsr.Tick(w.number("ms", 0)) * 1000) },
		"clock":     func(t *troupe, w *words) { t.now = w.number("now", t.now) },
		"deliver":   (*troupe).deliverLine,
		"drop":      func(t *troupe, w *words) { t.pick(w, func(k int) { t.net = append(t.net[:k], t.net[k+1:]...) }) },
		"double":    func(t *troupe, w *words) { t.pick(w, func(k int) { t.net = append(t.net, t.net[k]) }) },
		"lose":      func(t *troupe, w *words) { t.lose[w.rule()] = true },
		"hold":      func(t *troupe, w *words) { t.hold[w.rule()] = true },
		"heal":      (*troupe).healLine,
		"isolate":   func(t *troupe, w *words) { t.isolate(w.member(), true) },
		"join":      func(t *troupe, w *words) { t.isolate(w.member(), false) },
		"cut":       func(t *troupe, w *words) { t.cut[w.link()] = true },
		"kill":      func(t *troupe, w *words) { t.stop(w.member(), false) },
		"power":     func(t *troupe, w *words) { t.stop(w.member(), true) },
		"wipe":      func(t *troupe, w *words) { t.wipe(w.member()) },
		"start":     (*troupe).startLine,
		"dead":      func(t *troupe, w *words) { t.tellAll(w, vsr.InputDead) },
		"alive":     func(t *troupe, w *words) { t.tellAll(w, vsr.InputAlive) },
		"views":     (*troupe).viewsLine,
		"isolated":  func(t *troupe, w *words) { t.step(w.member(), vsr.Input{Kind: vsr.InputIsolated}) },
		"reached":   func(t *troupe, w *words) { t.step(w.member(), vsr.Input{Kind: vsr.InputReached}) },
		"hand-over": func(t *troupe, w *words) { t.step(w.member(), vsr.Input{Kind: vsr.InputHandOver}) },
		"pause":     func(t *troupe, w *words) { t.members[w.member()].paused = true },
		"resume":    func(t *troupe, w *words) { t.members[w.member()].paused = false },
		"accept":    func(t *troupe, w *words) { t.step(w.member(), vsr.Input{Kind: vsr.InputAcceptLoss}) },
		"slow":      func(t *troupe, w *words) { t.members[w.member()].slow = true },
		"fast":      func(t *troupe, w *words) { t.members[w.member()].slow = false },
		"write":     func(t *troupe, w *words) { t.write(w.member()) },
		"vote":      func(t *troupe, w *words) { t.save(w.member()) },
		"sync":      func(t *troupe, w *words) { t.members[w.member()].disk.sync() },
		"fail":      (*troupe).failLine,
		"damage":    (*troupe).damageLine,
		"forget":    func(t *troupe, w *words) { t.forget(w.member(), w.number("op", 0)) },
		"install":   func(t *troupe, w *words) { t.install(w.member(), uint8(w.number("from", 0))) },
		"no-state":  (*troupe).noStateLine,
		"state":     func(t *troupe, w *words) { t.printState() },
		"log":       (*troupe).logLine,
	}
}

func (t *troupe) proposeLine(w *words) {
	for range w.number("times", 1) {
		t.request++
		t.propose(w.member(), t.request)
	}
}

// pick finds the oldest frame of a kind on a link.
func (t *troupe) pick(w *words, do func(k int)) {
	link := w.link()
	for range w.number("times", 1) {
		for k := range t.net {
			p := &t.net[k]
			if p.from == link[0] && p.to == link[1] && (w.value["kind"] == "" || w.value["kind"] == p.header.Command().String()) {
				do(k)
				break
			}
		}
	}
}

// rule is a kind of frame on a link.
func (w *words) rule() string {
	if kind := w.value["kind"]; kind != "" {
		return kind + " " + w.who
	}
	return "* " + w.who
}

func (t *troupe) deliverLine(w *words) { t.pick(w, t.deliver) }

func (t *troupe) healLine(*words) {
	t.cut, t.lose, t.hold = map[[2]uint8]bool{}, map[string]bool{}, map[string]bool{}
}

func (t *troupe) startLine(w *words) {
	state := vsr.Whole
	m := t.members[w.member()]
	switch w.value["as"] {
	case "suspect":
		state, m.disk.vote.Whole = vsr.Suspect, false
	case "empty":
		state = vsr.Empty
	}
	t.start(w.member(), state, t.tick)
}

// tellAll tells all other members, or one of them, that a member is dead or alive.
func (t *troupe) tellAll(w *words, kind vsr.InputKind) {
	for i, m := range t.members {
		if by := w.number("by", uint64(i)); m.runs() && uint8(i) != w.member() && by == uint64(i) {
			t.step(uint8(i), vsr.Input{Kind: kind, From: w.member()})
		}
	}
}

// viewsLine tells a member the views of the others, as their pings do.
func (t *troupe) viewsLine(w *words) {
	for i, m := range t.members {
		if uint8(i) != w.member() && m.up {
			t.step(w.member(), vsr.Input{Kind: vsr.InputPeerView, From: uint8(i), Op: uint64(m.replica.View())})
		}
	}
}

func (t *troupe) failLine(w *words) {
	m := t.members[w.member()]
	if w.has("sync-lost") {
		t.step(w.member(), vsr.Input{Kind: vsr.InputWriteFailed, Op: m.disk.head() + 1, SyncLost: true})
		return
	}
	op := m.disk.pending[0].header.Op
	m.disk.pending = nil
	t.step(w.member(), vsr.Input{Kind: vsr.InputWriteFailed, Op: op})
}

// damageLine makes the newest entries of a stopped member's log unreadable; their headers are known.
func (t *troupe) damageLine(w *words) {
	d := &t.members[w.member()].disk
	from := w.number("from", 0)
	d.adopt, d.view = nil, d.vote.LogView
	for op := d.head(); op >= from; op-- {
		d.adopt = append(d.adopt, d.log[op-d.base-1])
	}
	d.lost = d.head()
	d.log = cutLog(d.log, d.base, from)
}

func (t *troupe) noStateLine(w *words) {
	t.members[w.member()].transfer = nil
	t.step(w.member(), vsr.Input{Kind: vsr.InputTransferFailed})
}

func (t *troupe) printState() {
	for i, m := range t.members {
		if !m.up {
			t.say("%d down", i)
			continue
		}
		r := m.replica
		role := "backup"
		switch {
		case r.Primary():
			role = "primary"
		case r.Deadlocked():
			role = "stuck"
		case r.ViewChanging():
			role = "changing"
		}
		h := r.Head()
		t.say("%d %-8s view=%d log=%d head=%s commit=%d timer=%v", i, role, r.View(), r.LogView(), name(&h), r.Commit(), m.wake != 0)
	}
}

func (t *troupe) logLine(w *words) {
	m := t.members[w.member()]
	for i := range m.log {
		h := &m.log[i]
		t.say("%s view=%d time=%d parent=%04x id=%04x", name(h), h.View, h.Timestamp, h.Parent.Lo>>48, h.Checksum.Lo>>48)
	}
}
