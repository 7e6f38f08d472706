package loop

import (
	"sync"

	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/vsr"
)

// vote puts what the group has promised into this turn's batch of votes.
func (l *Loop) vote(g *Group) {
	if !g.peers.voting && !g.peers.guarded {
		g.peers.voting = true
		l.votes = append(l.votes, g)
	}
}

// promised is until when a vote must wait that leaves a primary which may still count on this member: the Pongs of
// the node say whom its member of a leased group follows, and the last one may have left just now. 0: it need not.
func (l *Loop) promised(g *Group, v *vsr.Vote) vsr.Tick {
	p := g.peers
	if !p.leased || !v.Deserts {
		return 0
	}
	g.publish() // from here on no Pong says that it follows
	if until := l.Echoes.bound(p.nodes[v.Deserted]); until > l.env.Tick() {
		return until
	}
	return 0
}

// cast has a vote saved.
func (l *Loop) cast(g *Group, v vsr.Vote) {
	p := g.peers
	p.vote, p.asked = v, true
	if v.Whole && (p.fenced || p.epoch < l.epoch) {
		l.whole(g)
	} else {
		l.vote(g)
	}
}

// releaseVote casts a vote whose wait is over.
func (l *Loop) releaseVote(g *Group) {
	if p := g.peers; p.bound != 0 && l.env.Tick() >= p.bound {
		p.bound = 0
		l.cast(g, p.late)
	}
}

// ballot is a batch of votes being saved.
type ballot struct {
	seq    uint64
	groups []*Group
}

// castVotes hands the votes of the turn over: one sync for all groups.
func (l *Loop) castVotes() {
	if len(l.votes) == 0 {
		return
	}
	l.voteSeq++
	batch := make([]journal.Vote, 0, len(l.votes))
	for _, g := range l.votes {
		p := g.peers
		if p.voting = false; p.asked {
			p.asked, p.voteSeq = false, l.voteSeq
		}
		batch = append(batch, journal.Vote{Group: g.ID, View: p.vote.View, LogView: p.vote.LogView, Epoch: p.epoch, Gone: g.gone})
	}
	l.ballots = append(l.ballots, ballot{l.voteSeq, l.votes})
	l.votes = nil
	l.env.SaveVotes(l.voteSeq, batch)
}

// voted takes the completion of a batch of votes. Batches complete in order; an error is final.
func (l *Loop) voted(seq uint64, err error) {
	if err != nil {
		l.lost = true
		if l.Failed != nil {
			l.Failed(err)
		}
		return
	}
	b := l.ballots[0]
	if b.seq != seq {
		panic("loop: votes complete out of order")
	}
	l.ballots = l.ballots[1:]
	for _, g := range b.groups {
		p := g.peers
		if g.gone {
			continue
		}
		if p.birth {
			p.birth = false
			l.tellKept(g)
		}
		if p.voteSeq == seq {
			p.voteSeq = 0
			l.tell(g, vsr.Input{Kind: vsr.InputVoteSaved})
		}
	}
}

// tellKept tells the core of the completions it was not told before the group's first vote was saved:
// nothing of a new group is acknowledged before (rule D1).
func (l *Loop) tellKept(g *Group) {
	k := g.peers.kept
	g.peers.kept = completion{}
	if k.op > 0 {
		l.tellHeld(g, k)
	}
}

func (l *Loop) tellHeld(g *Group, c completion) {
	kind := vsr.InputWritten
	if c.synced {
		kind = vsr.InputSynced
	}
	l.tell(g, vsr.Input{Kind: kind, Op: c.op})
}

// Votes is the vote ring of a node as its loops share it.
type Votes struct {
	table  *journal.Votes
	writer *journal.VoteWriter

	mu      sync.Mutex
	seq     uint64
	waiting map[uint64]func(error)
}

// OpenVotes opens the votes of a data directory. A stepped owner saves on its own goroutine; otherwise
// the batches of all loops share a goroutine and its syncs.
func OpenVotes(fs vfs.FS, dir string, node [16]byte, stepped bool) (*Votes, journal.VoteReport, error) {
	table, report, err := journal.OpenVotes(fs, dir, node)
	if err != nil {
		return nil, report, err
	}
	v := &Votes{table: table, waiting: make(map[uint64]func(error))}
	if !stepped {
		v.writer = journal.NewVoteWriter(table, v.saved)
	}
	return v, report, nil
}

// Get returns the vote of a group.
func (v *Votes) Get(group uint64) (journal.Vote, bool) { return v.table.Get(group) }

// save makes a batch durable; done is called once, on another goroutine.
func (v *Votes) save(batch []journal.Vote, done func(error)) {
	v.mu.Lock()
	v.seq++
	seq := v.seq
	v.waiting[seq] = done
	v.mu.Unlock()
	if !v.writer.Submit(seq, batch) {
		v.saved(journal.VoteDone{Seq: seq, Err: journal.ErrClosed})
	}
}

func (v *Votes) saved(d journal.VoteDone) {
	v.mu.Lock()
	done := v.waiting[d.Seq]
	delete(v.waiting, d.Seq)
	v.mu.Unlock()
	done(d.Err)
}

// Close saves what was handed over and closes the file.
func (v *Votes) Close() error {
	if v.writer != nil {
		v.writer.Close()
	}
	return v.table.Close()
}
