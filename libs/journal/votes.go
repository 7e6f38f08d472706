package journal

import (
	"cmp"
	"errors"
	"path"
	"slices"
	"sync"

	"github.com/whippet-mq/whippet/libs/vfs"
)

// Vote is what a member has promised in one group. Epoch is the suspect epoch in which it is known
// to be whole.
type Vote struct {
	Group         uint64
	View, LogView uint32
	Epoch         uint64
	Gone          bool // the group ended; its record goes
}

// Votes is the durable table of votes. It stands in blocks written ahead of time, so that saving
// votes allocates nothing on disk and waits for no other dirty bytes.
//
// The file has two areas. A generation begins with the whole table at the head of one area and goes
// on with a block, or several, for each save; when the area is full the next generation begins in
// the other one. Every area stands twice, so that one damaged place loses nothing.
type Votes struct {
	fs   vfs.FS
	name string
	node [16]byte

	mu         sync.Mutex
	file       vfs.File
	blocks     int // of one copy of an area
	generation uint64
	next       int // index of the block written next
	snapshot   int // blocks the generation began with
	table      map[uint64]Vote
	buf        []byte
	failed     error
}

const (
	minVoteBlocks = 64
	voteBlockRoom = 4 // an area has this many times the blocks of the table
)

// VoteReport is what OpenVotes found.
type VoteReport struct {
	Corrupt []Damage
	// Lost: votes of unknown groups are unreadable in both copies; no vote may be taken for the last
	// one of its group.
	Lost bool
}

// OpenVotes reads the votes of a data directory and begins a new generation, making the file if
// there is none.
func OpenVotes(fs vfs.FS, dir string, node [16]byte) (*Votes, VoteReport, error) {
	v := &Votes{fs: fs, name: dir + "/" + votesName, node: node, table: map[uint64]Vote{}}
	var report VoteReport
	file, err := fs.Open(v.name)
	if err != nil {
		if vfs.IsNotExist(err) {
			err = v.create()
		}
		return v, report, err
	}
	v.file = file
	size, err := file.Size()
	if err != nil {
		return nil, report, errors.Join(err, file.Close())
	}
	raw := make([]byte, size)
	n, err := file.ReadAt(raw, 0)
	if int64(n) < size && err != nil {
		report.Corrupt = append(report.Corrupt, Damage{File: v.name, Pos: int64(n), Len: size - int64(n), Reason: "unreadable: " + err.Error()})
	}
	v.load(raw[:n], &report)
	if len(report.Corrupt) > 0 {
		if err := errors.Join(file.Close(), fs.Rename(v.name, v.name+damagedSuffix)); err != nil {
			return nil, report, err
		}
		return v, report, v.create()
	}
	if err := v.begin(); err != nil {
		return nil, report, errors.Join(err, file.Close())
	}
	return v, report, nil
}

// create makes a file of fresh blocks with the table in it and puts it in place.
func (v *Votes) create() error {
	temp := v.name + tempSuffix
	if err := v.fs.Remove(temp); err != nil && !vfs.IsNotExist(err) {
		return err
	}
	file, err := v.fs.Create(temp)
	if err != nil {
		return err
	}
	v.file, v.blocks = file, max(minVoteBlocks, blocksFor(len(v.table))*voteBlockRoom)
	if _, err = file.WriteAt(make([]byte, 4*v.blocks*slotSize), 0); err == nil {
		err = v.begin()
	}
	if err == nil {
		err = v.fs.Rename(temp, v.name)
	}
	if err == nil {
		err = v.fs.SyncDir(path.Dir(v.name))
	}
	return err
}

// All lists the votes in ascending group order.
func (v *Votes) All() []Vote {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.all()
}

func (v *Votes) all() []Vote {
	list := make([]Vote, 0, len(v.table))
	for _, vote := range v.table {
		list = append(list, vote)
	}
	slices.SortFunc(list, func(a, b Vote) int { return cmp.Compare(a.Group, b.Group) })
	return list
}

// Get returns the vote of a group.
func (v *Votes) Get(group uint64) (Vote, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	vote, ok := v.table[group]
	return vote, ok
}

// Save makes the votes durable with one sync, in place of those their groups had. Any error is final.
func (v *Votes) Save(votes []Vote) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.failed != nil || len(votes) == 0 {
		return v.failed
	}
	for _, vote := range votes {
		v.set(vote)
	}
	switch need := blocksFor(len(votes)); {
	case v.next+need <= v.blocks:
		v.failed = v.write(votes)
	case blocksFor(len(v.table))*2 <= v.blocks:
		v.failed = v.begin()
	default:
		v.failed = errors.Join(v.file.Close(), v.create())
	}
	return v.failed
}

func (v *Votes) set(vote Vote) {
	if vote.Gone {
		delete(v.table, vote.Group)
		return
	}
	v.table[vote.Group] = vote
}

// begin starts the next generation with the whole table. The one before stays as it is.
func (v *Votes) begin() error {
	v.generation++
	v.next, v.snapshot = 0, blocksFor(len(v.table))
	return v.write(v.all())
}

// write makes votes durable in the next blocks of both copies of the area.
func (v *Votes) write(votes []Vote) error {
	first := v.next
	v.buf = v.buf[:0]
	for v.next < first+blocksFor(len(votes)) {
		part := votes[min((v.next-first)*votesPerBlock, len(votes)):]
		part = part[:min(len(part), votesPerBlock)]
		v.buf = append(v.buf, make([]byte, slotSize)...)
		h := voteBlock{generation: v.generation, index: v.next, first: first, snapshot: v.snapshot, blocks: v.blocks}
		h.encode(v.buf[len(v.buf)-slotSize:], v.node, part)
		v.next++
	}
	area := int64(v.generation%2) * 2 * int64(v.blocks)
	for copies := range int64(2) {
		at := (area + copies*int64(v.blocks) + int64(first)) * slotSize
		if _, err := v.file.WriteAt(v.buf, at); err != nil {
			return err
		}
	}
	return v.file.Sync()
}

// Close closes the file.
func (v *Votes) Close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.failed = ErrClosed
	return v.file.Close()
}
