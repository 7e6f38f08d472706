package vsr_test

import (
	"slices"

	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// disk is one member's stable storage and what is on its way to it, in order.
type disk struct {
	base    uint64               // the log begins behind this op
	log     []wire.PrepareHeader // base+1, …: written
	stable  []wire.PrepareHeader // what of the log a power cut leaves
	root    wire.PrepareHeader   // the header at base
	vote    vsr.Vote
	adopt   []wire.PrepareHeader
	view    uint32     // of adopt
	lost    uint64     // an entry that can not be read any more
	pending []write    // of the log, in order
	votes   []vsr.Vote // on their way; they do not wait for the log
}

// write is one thing on its way to the log.
type write struct {
	header   *wire.PrepareHeader
	truncate uint64
	adopt    []wire.PrepareHeader
	view     uint32
}

func (d *disk) head() uint64 { return d.base + uint64(len(d.log)) }

func cutLog(log []wire.PrepareHeader, base, op uint64) []wire.PrepareHeader {
	return log[:min(uint64(len(log)), op-1-base)]
}

// queue takes the effects of a Step.
func (d *disk) queue(out *vsr.Output) {
	if out.Truncate != 0 || out.AdoptView != 0 {
		d.pending = append(d.pending, write{truncate: out.Truncate, adopt: slices.Clone(out.Adopt), view: out.AdoptView})
	}
	for i := range out.Append {
		h := out.Append[i].Header
		d.pending = append(d.pending, write{header: &h})
	}
	if out.Vote.Save {
		d.votes = append(d.votes, out.Vote)
	}
}

// write carries out the first pending write of the log and returns the completions it makes.
func (d *disk) write(synced bool) (done []vsr.Input) {
	w := d.pending[0]
	d.pending = d.pending[1:]
	switch {
	case w.header != nil:
		d.log = append(d.log, *w.header)
		kind := vsr.InputWritten
		if synced {
			kind = vsr.InputSynced
		}
		if !d.cutLater(w.header.Op) {
			done = append(done, vsr.Input{Kind: kind, Op: w.header.Op})
		}
	default:
		if w.truncate != 0 {
			d.log = cutLog(d.log, d.base, w.truncate)
		}
		if w.view != 0 {
			d.adopt, d.view = w.adopt, w.view
			d.sync()
			done = append(done, vsr.Input{Kind: vsr.InputAdopted})
		}
	}
	if synced {
		d.sync()
	}
	return done
}

// save makes the first vote durable. The first one that says whole waits for all of the log.
func (d *disk) save() (done []vsr.Input) {
	v := d.votes[0]
	if v.Whole && !d.vote.Whole {
		for len(d.pending) > 0 {
			done = append(done, d.write(true)...)
		}
		d.sync()
	}
	d.vote, d.votes = v, d.votes[1:]
	return append(done, vsr.Input{Kind: vsr.InputVoteSaved})
}

func (d *disk) busy() bool { return len(d.pending)+len(d.votes) > 0 }

// cutLater reports whether a truncation of op is on its way: no completion is told of such an op.
func (d *disk) cutLater(op uint64) bool {
	for i := range d.pending {
		if t := d.pending[i].truncate; t != 0 && t <= op {
			return true
		}
	}
	return false
}

func (d *disk) sync() { d.stable = slices.Clone(d.log) }

// kill forgets what was not written, power what was not synced too.
func (d *disk) kill() { d.pending, d.votes = nil, nil }

func (d *disk) power() {
	d.kill()
	d.log = slices.Clone(d.stable)
}

// boot is what the disk says at the next start.
func (d *disk) boot(state vsr.LogState) vsr.Boot {
	b := vsr.Boot{View: d.vote.View, LogView: d.vote.LogView, Head: d.head(), Commit: d.base, Adopted: d.adopt, AdoptView: d.view, Lost: d.lost, State: state}
	for i := range d.log {
		b.Commit = max(b.Commit, min(d.log[i].Commit, b.Head))
	}
	for op := b.Head; op >= max(b.Commit, 1) && op > d.base; op-- {
		b.Tail = append(b.Tail, d.log[op-d.base-1])
	}
	if b.Commit == d.base && d.base > 0 {
		b.Tail = append(b.Tail, d.root)
	}
	return b
}
