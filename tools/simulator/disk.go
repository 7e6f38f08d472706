package simulator

import "github.com/whippet-mq/whippet/libs/vsr"

// savedVote is the durable vote of one group. A vote that carries the session's suspect epoch
// vouches for the log (design-arguments 1, D5); epoch 0 vouches for nothing.
type savedVote struct {
	known         bool
	view, logView uint32
	epoch         uint64
}

// firstEpoch is the suspect epoch of a new disk.
const firstEpoch = 1

// session is the durable evidence of the last process.
type session struct {
	open        bool
	boot        uint64 // boot id of the machine when it was written
	epoch       uint64 // suspect epoch
	syncedEpoch uint64 // newest epoch that a failed sync raised: it makes synced groups suspect too
}

// disk is what a node keeps, and the one writer, one syncer and one vote ring in front of it. Durable
// state outlives the process; completions go to the process that asked.
type disk struct {
	n       *node
	chance  *stream
	boot    uint64 // changes when the machine loses power
	session session
	votes   []savedVote
	logs    []groupLog // by group: what a power cut leaves
	damaged []uint64   // by group: the op that will not be readable at the next start, 0 = none

	pending  []record // submitted and not synced, in order
	written  int      // so many of pending are with the operating system
	position uint64   // of the newest record
	handed   uint64   // position up to which everything is written
	stable   uint64   // position up to which everything is synced

	writing, syncing, voting bool
	syncAt                   uint64 // a background sync is planned, 0 = none
	asked                    []vsr.Vote
	saving                   []vsr.Vote

	slowUntil, fullUntil uint64
	slowLog              bool // slow is the log alone, the votes are elsewhere
	failWrite, failSync  bool
	lost                 bool // a sync failed: the process ends, and nothing is written before
}

func newDisk(n *node) *disk {
	groups := len(n.w.config.Groups)
	return &disk{
		n: n, chance: newStream(n.w.config.Seed, "disk "+string(rune('a'+n.id))), boot: 1,
		session: session{epoch: firstEpoch, syncedEpoch: firstEpoch},
		votes:   make([]savedVote, groups), logs: make([]groupLog, groups), damaged: make([]uint64, groups),
		asked: make([]vsr.Vote, groups), saving: make([]vsr.Vote, groups),
	}
}

// complete runs done after an operation of a usual duration, if the process still lives.
func (d *disk) complete(usual uint64, done func()) { d.finish(usual, d.n.w.now < d.slowUntil, done) }

// completeVote is complete for the vote ring.
func (d *disk) completeVote(usual uint64, done func()) {
	d.finish(usual, d.n.w.now < d.slowUntil && !d.slowLog, done)
}

func (d *disk) finish(usual uint64, slow bool, done func()) {
	life, t := d.n.life, usual/4+d.chance.about(usual)
	if slow {
		t = t*20 + 100*millisecond
	}
	d.n.w.after(t, func() {
		if d.n.life == life {
			done()
		}
	})
}

// submit adds a record and returns its position.
func (d *disk) submit(r record) uint64 {
	d.position++
	r.position, r.entry.position = d.position, d.position
	d.pending = append(d.pending, r)
	d.write()
	return d.position
}

// write starts a round with everything that waits.
func (d *disk) write() {
	if d.writing || d.written == len(d.pending) {
		return
	}
	d.writing = true
	last := d.pending[len(d.pending)-1].position
	d.complete(d.n.w.config.Write, func() {
		if d.lost {
			return
		}
		d.writing = false
		if d.failWrite || d.n.w.now < d.fullUntil {
			d.failWrite = false
			d.refuse()
		}
		for d.written < len(d.pending) && d.pending[d.written].position <= last {
			d.written++
		}
		d.handed = max(d.handed, last)
		d.n.tell(func() { d.n.reportWritten() })
		d.sync()
		d.write()
	})
}

// refuse loses every prepare that is not written yet. Truncations, adoptions and votes have a reserve
// of space and stay (design-arguments 27).
func (d *disk) refuse() {
	d.n.w.count("prepares refused by the disk")
	kept := d.pending[:d.written]
	lost := map[int]uint64{}
	for _, r := range d.pending[d.written:] {
		if r.kind != recordPrepare {
			kept = append(kept, r)
		} else if _, known := lost[r.group]; !known {
			lost[r.group] = r.position
		}
	}
	d.pending = kept
	for group := range d.logs {
		if position, ok := lost[group]; ok {
			d.n.tell(func() {
				if m := d.n.members[group]; m != nil {
					m.loseFrom(position)
				}
			})
		}
	}
}

// sync starts a sync where somebody waits for one, and plans one where nobody does.
func (d *disk) sync() {
	if d.syncing || d.written == 0 {
		return
	}
	urgent := d.syncAt != 0 && d.n.w.now >= d.syncAt
	for i := range d.pending[:d.written] {
		urgent = urgent || d.pending[i].urgent
	}
	if !urgent {
		d.plan()
		return
	}
	d.syncing, d.syncAt = true, 0
	last := d.pending[d.written-1].position
	d.complete(d.n.w.config.Sync, func() {
		d.syncing = false
		if d.failSync {
			d.failSync = false
			d.n.syncLost()
			return
		}
		d.settle(last)
		d.n.tell(func() { d.n.reportSynced() })
		d.sync()
	})
}

// plan has a background sync follow a write within a second (D4).
func (d *disk) plan() {
	if d.syncAt != 0 {
		return
	}
	wait := d.chance.between(100*millisecond, second)
	d.syncAt = d.n.w.now + wait
	life := d.n.life
	d.n.w.after(wait, func() {
		if d.n.life == life {
			d.sync()
		}
	})
}

// settle makes the records up to a position part of what a power cut leaves.
func (d *disk) settle(position uint64) {
	count := 0
	for count < d.written && d.pending[count].position <= position {
		r := &d.pending[count]
		d.logs[r.group].replay(r)
		if r.view != 0 {
			group, view := r.group, r.view
			d.n.tell(func() {
				if m := d.n.members[group]; m != nil {
					m.adopted(view)
				}
			})
		}
		count++
	}
	d.pending = d.pending[count:]
	d.written -= count
	d.stable = max(d.stable, position)
}

// saveVote asks for a vote; the newest one of each group counts, all of a turn share one sync.
func (d *disk) saveVote(group int, v vsr.Vote) {
	d.asked[group] = v
	if d.voting {
		return
	}
	d.voting = true
	copy(d.saving, d.asked)
	clear(d.asked)
	d.completeVote(d.n.w.config.Sync/2, d.votesDone)
}

// votesDone ends a turn of the vote ring, once the logs that it vouches for are synced.
func (d *disk) votesDone() {
	if d.syncFirst() {
		d.sync()
		d.complete(d.n.w.config.Sync, d.votesDone)
		return
	}
	d.voting = false
	saved := append([]vsr.Vote(nil), d.saving...)
	d.keepVotes()
	for i := range saved {
		if saved[i].Save && !d.asked[i].Save {
			d.n.tell(func() {
				if m := d.n.members[i]; m != nil {
					m.voteSaved()
				}
			})
		}
	}
	for i := range d.asked {
		if d.asked[i].Save {
			d.saveVote(i, d.asked[i])
			return
		}
	}
}

// raises reports whether a vote is the one that makes a log in doubt whole (D9).
func (d *disk) raises(group int) bool {
	return d.saving[group].Save && d.saving[group].Whole && d.votes[group].epoch != d.session.epoch
}

// syncFirst reports whether a log that a vote vouches for is not synced yet, and has it synced.
func (d *disk) syncFirst() bool {
	wait := false
	for i := range d.pending {
		if d.raises(d.pending[i].group) {
			d.pending[i].urgent, wait = true, true
		}
	}
	return wait
}

// keepVotes makes the votes on their way durable.
func (d *disk) keepVotes() {
	for i, v := range d.saving {
		if !v.Save {
			continue
		}
		d.n.w.history[i].voteSaved(d.n.id, d.votes[i], v)
		d.votes[i].known, d.votes[i].view, d.votes[i].logView = true, v.View, v.LogView
		if v.Whole {
			d.votes[i].epoch = d.session.epoch
		}
	}
	clear(d.saving)
}

// vouched reports whether the vote record says that a group's log is whole.
func (d *disk) vouched(group int) bool {
	v := &d.votes[group]
	return v.known && (v.epoch == d.session.epoch || d.n.w.config.Groups[group].Policy.Synced && v.epoch >= d.session.syncedEpoch)
}

// found is what a start finds of a group: what is synced and what is written.
func (d *disk) found(group int) groupLog {
	l := d.logs[group].clone()
	for i := range d.pending[:d.written] {
		if d.pending[i].group == group {
			l.replay(&d.pending[i])
		}
	}
	return l
}

// stop ends the process. What it had submitted may have reached the operating system in part, and so
// may a vote.
func (d *disk) stop() {
	d.written += d.chance.index(len(d.pending) - d.written + 1)
	d.pending = d.pending[:d.written]
	if d.written > 0 {
		d.handed = max(d.handed, d.pending[d.written-1].position)
	}
	d.keepVotesPerhaps()
	d.forget()
}

// losePower ends the machine: any part of what is not synced is gone, and what follows the first gap
// with it (D6).
func (d *disk) losePower() {
	d.keepVotesPerhaps()
	d.written = d.chance.index(d.written + 1)
	d.settleQuietly()
	d.boot++
	d.forget()
}

// keepVotesPerhaps ends a turn of the vote ring with its process: it reached the disk or not.
func (d *disk) keepVotesPerhaps() {
	if d.voting && d.chance.chance(0.5) && !d.syncFirst() {
		d.keepVotes()
	}
}

// settleQuietly makes what is written part of what a power cut leaves, with nobody to tell.
func (d *disk) settleQuietly() {
	for i := range d.pending[:d.written] {
		r := &d.pending[i]
		d.logs[r.group].replay(r)
		d.stable = max(d.stable, r.position)
	}
	d.pending, d.written = nil, 0
}

// forget drops what belonged to the process.
func (d *disk) forget() {
	d.writing, d.syncing, d.voting, d.syncAt = false, false, false, 0
	d.failWrite, d.failSync, d.lost = false, false, false
	clear(d.asked)
	clear(d.saving)
}

// copies are all versions of a group's log that the node has: on disk as a start would find it, and
// in the process.
func (n *node) copies(group int) []*groupLog {
	if !n.hosts(group) {
		return nil
	}
	found := n.disk.found(group)
	list := []*groupLog{&found}
	if m := n.members[group]; n.up() && m != nil {
		list = append(list, &m.log)
	}
	return list
}
