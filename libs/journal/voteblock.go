package journal

import "fmt"

// A block of votes is
//
//	0 magic u32 · 4 version u32 · 8 generation u64 · 16 node 16 · 32 votes u32 · 36 blocks of an area u32 ·
//	40 hash u64 · 48 index u32 · 52 index of the first block of its save u32 · 56 blocks the generation began with u32 ·
//	60 zero u32 · 64 votes, each group u64 · epoch u64 · view u32 · log view u32 · flags u64
//
// The hash covers the block without itself.
const (
	votesMagic    = 0x45544f56 // "VOTE"
	voteSize      = 32
	voteHeader    = 64
	votesPerBlock = (slotSize - voteHeader) / voteSize
	voteGone      = 1
)

type voteBlock struct {
	generation              uint64
	index, first            int
	snapshot, blocks, count int
}

// blocksFor is the number of blocks n votes take; an empty table takes one.
func blocksFor(n int) int { return max(1, (n+votesPerBlock-1)/votesPerBlock) }

func (h *voteBlock) encode(b []byte, node [16]byte, votes []Vote) {
	le.PutUint32(b, votesMagic)
	le.PutUint32(b[4:], formatVersion)
	le.PutUint64(b[8:], h.generation)
	copy(b[16:32], node[:])
	le.PutUint32(b[32:], uint32(len(votes)))
	le.PutUint32(b[36:], uint32(h.blocks))
	le.PutUint32(b[48:], uint32(h.index))
	le.PutUint32(b[52:], uint32(h.first))
	le.PutUint32(b[56:], uint32(h.snapshot))
	for i, vote := range votes {
		e := b[voteHeader+i*voteSize:]
		le.PutUint64(e, vote.Group)
		le.PutUint64(e[8:], vote.Epoch)
		le.PutUint32(e[16:], vote.View)
		le.PutUint32(e[20:], vote.LogView)
		if vote.Gone {
			le.PutUint64(e[24:], voteGone)
		}
	}
	le.PutUint64(b[40:], slotHash(b))
}

// decode reads a block; false if it is damaged or of another node (a zero node owns every block).
func (h *voteBlock) decode(b []byte, node [16]byte) bool {
	if len(b) < slotSize || le.Uint32(b) != votesMagic || le.Uint32(b[4:]) != formatVersion || le.Uint64(b[40:]) != slotHash(b) ||
		node != [16]byte{} && string(b[16:32]) != string(node[:]) {
		return false
	}
	*h = voteBlock{
		generation: le.Uint64(b[8:]), index: int(le.Uint32(b[48:])), first: int(le.Uint32(b[52:])),
		snapshot: int(le.Uint32(b[56:])), blocks: int(le.Uint32(b[36:])), count: int(le.Uint32(b[32:])),
	}
	return h.count <= votesPerBlock
}

func voteIn(b []byte, i int) Vote {
	e := b[voteHeader+i*voteSize:]
	return Vote{
		Group: le.Uint64(e), Epoch: le.Uint64(e[8:]), View: le.Uint32(e[16:]), LogView: le.Uint32(e[20:]),
		Gone: le.Uint64(e[24:])&voteGone != 0,
	}
}

// voteArea is one generation as found in both copies of an area, by block index.
type voteArea struct {
	generation uint64
	blocks     []foundBlock
	last       int // highest index found, -1 if none
}

type foundBlock struct {
	voteBlock
	raw    []byte // nil: damaged or never written in both copies
	copies int
}

// load reads the raw file into the table.
func (v *Votes) load(raw []byte, report *VoteReport) {
	var h voteBlock
	for at := 0; at+slotSize <= len(raw) && v.blocks == 0; at += slotSize {
		if h.decode(raw[at:at+slotSize], v.node) {
			v.blocks = h.blocks
		}
	}
	if v.blocks == 0 {
		v.blocks = minVoteBlocks
		v.damage(report, 0, len(raw), "no intact block")
		report.Lost = true
		return
	}
	if len(raw) < 4*v.blocks*slotSize {
		v.damage(report, len(raw), 4*v.blocks*slotSize-len(raw), "file is cut short")
		report.Lost = len(raw) < 3*v.blocks*slotSize // not even the first copies are all there
	}
	a, b := v.area(raw, 0), v.area(raw, 1)
	if b.generation > a.generation {
		a, b = b, a
	}
	v.generation = a.generation
	if !a.begun() {
		// The newest generation was not begun to the end: the one before is complete.
		if b.last < 0 {
			v.damage(report, 0, len(raw), "no complete generation")
			report.Lost = true
			return
		}
		if complete := a.last >= 0 && a.last >= a.blocks[a.last].snapshot; !complete {
			a = b
		} else {
			report.Lost = true
			v.take(&b, report)
		}
	}
	v.take(&a, report)
}

func (v *Votes) damage(report *VoteReport, pos, size int, reason string) {
	report.Corrupt = append(report.Corrupt, Damage{File: v.name, Pos: int64(pos), Len: int64(size), Reason: reason, Kept: v.name + damagedSuffix})
}

// area collects the newest generation of an area from its two copies.
func (v *Votes) area(raw []byte, which int) voteArea {
	a := voteArea{last: -1, blocks: make([]foundBlock, v.blocks)}
	for pass := range 2 { // first the generation, then its blocks
		for i := range 2 * v.blocks {
			at := (which*2*v.blocks + i) * slotSize
			if at+slotSize > len(raw) {
				break
			}
			var h voteBlock
			b := raw[at : at+slotSize]
			if !h.decode(b, v.node) || h.index != i%v.blocks || h.generation%2 != uint64(which) {
				continue
			}
			if pass == 0 {
				a.generation = max(a.generation, h.generation)
			} else if h.generation == a.generation {
				f := &a.blocks[h.index]
				f.voteBlock, f.raw = h, b
				f.copies++
				a.last = max(a.last, h.index)
			}
		}
	}
	return a
}

// begun reports whether the blocks the generation began with are all there.
func (a *voteArea) begun() bool {
	if a.last < 0 {
		return false
	}
	for i := range min(a.blocks[a.last].snapshot, len(a.blocks)) {
		if a.blocks[i].raw == nil {
			return false
		}
	}
	return true
}

// take puts a generation into the table. Blocks of the last save may be torn: it was not complete.
func (v *Votes) take(a *voteArea, report *VoteReport) {
	tail := a.blocks[a.last].first
	for i := range a.last + 1 {
		f := &a.blocks[i]
		pos := (int(a.generation%2)*2*v.blocks + i) * slotSize
		if f.copies < 2 && i < tail {
			v.damage(report, pos, slotSize, fmt.Sprintf("block stands in %d of 2 copies", f.copies))
		}
		if f.raw == nil {
			report.Lost = report.Lost || i < tail
			continue
		}
		for j := range f.count {
			v.set(voteIn(f.raw, j))
		}
	}
}
