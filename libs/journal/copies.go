package journal

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/whippet-mq/whippet/libs/vfs"
)

// A checkpoint stands on disk twice: what one file lost is taken from the other, image by image, and
// the damaged one is kept aside and written anew. Either file alone is a checkpoint.

func copyName(at LSN) string { return fmt.Sprintf("%s%020d", copyPrefix, uint64(at)) }

// writeBoth makes a checkpoint durable. After an error what was in force before still is.
func (j *Journal) writeBoth(at LSN, images []Image) error {
	for _, name := range [...]string{copyName(at), checkpointName(at)} {
		if err := j.writeCheckpoint(name, at, images); err != nil {
			return err
		}
	}
	return nil
}

// removeCheckpoint lets go of both files of a checkpoint.
func (j *Journal) removeCheckpoint(c checkpointFile) error {
	for i, name := range [...]string{checkpointName(c.at), copyName(c.at)} {
		var err error
		if c.damaged[i] {
			err = j.fs.Rename(j.path(name), j.path(name)+damagedSuffix)
		} else {
			err = j.fs.Remove(j.path(name))
		}
		if err != nil && !vfs.IsNotExist(err) {
			return err
		}
	}
	return nil
}

// readCheckpoint reads the checkpoint at from both its files.
func (j *Journal) readCheckpoint(at LSN) (set imageSet, faults []Damage, missing bool) {
	j.checkpoint = checkpointFile{name: checkpointName(at), at: at}
	var sets [2]imageSet
	for i, name := range [...]string{checkpointName(at), copyName(at)} {
		b, err := j.readFile(name)
		switch s := &sets[i]; {
		case vfs.IsNotExist(err):
			*s = imageSet{name: name, at: at} // a crash between the two writes does this too
			missing = true
		case err != nil:
			*s = imageSet{name: name, at: at}
			s.fault(0, int64(len(b)), "unreadable: "+err.Error())
			j.checkpoint.damaged[i] = true
		default:
			*s = decodeCheckpoint(name, at, b, j.opt.Owner)
			j.checkpoint.damaged[i] = len(s.faults) > 0
		}
		faults = append(faults, sets[i].faults...)
	}
	return merge(&sets[0], &sets[1]), faults, missing
}

// whole reports that nothing of the checkpoint is missing.
func (s *imageSet) whole() bool { return s.complete && len(s.damaged) == 0 }

// merge takes every image that either of two files of one checkpoint holds.
func merge(a, b *imageSet) imageSet {
	if a.whole() {
		return *a
	}
	if b.whole() {
		return *b
	}
	out := imageSet{name: a.name, at: a.at, complete: a.complete || b.complete}
	known := map[uint64]bool{}
	for _, s := range [...]*imageSet{a, b} {
		for i := range s.images {
			if m := &s.images[i]; !known[m.Group] {
				known[m.Group] = true
				out.images = append(out.images, *m)
			}
		}
	}
	for _, s := range [...]*imageSet{a, b} {
		for _, id := range s.damaged {
			if !known[id] {
				known[id] = true
				out.damaged = append(out.damaged, id)
			}
		}
	}
	slices.SortFunc(out.images, func(a, b Image) int { return cmp.Compare(a.Group, b.Group) })
	return out
}

// mendCheckpoint writes the damaged file of a checkpoint anew if the other one, or both together,
// hold all of it. Failing to is no harm: the next start does it.
func (j *Journal) mendCheckpoint(set *imageSet) {
	if !set.whole() {
		return
	}
	c := &j.checkpoint
	for i, name := range [...]string{checkpointName(c.at), copyName(c.at)} {
		if _, err := j.fs.Stat(j.path(name)); err == nil && !c.damaged[i] {
			continue
		}
		if c.damaged[i] && j.fs.Rename(j.path(name), j.path(name)+damagedSuffix) != nil {
			return
		}
		c.damaged[i] = false
		if j.writeCheckpoint(name, c.at, set.images) != nil {
			return
		}
	}
}

// dropOlder removes checkpoints that a crash kept from being removed.
func (j *Journal) dropOlder(checkpoints []LSN) error {
	for _, at := range checkpoints {
		if at < j.checkpoint.at {
			if err := j.removeCheckpoint(checkpointFile{at: at}); err != nil {
				return err
			}
			j.dirty = true
		}
	}
	return nil
}
