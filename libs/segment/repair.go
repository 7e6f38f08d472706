package segment

import (
	"bytes"
	"fmt"
	"io"
)

// Repair restores damaged bytes of one segment file from an equal file of another member.
type Repair struct{ x extent }

// RepairPlan returns the repair of what is committed of the segment with the given base offset; nil if the log has
// none of that base any more.
func (l *Log) RepairPlan(base uint64) *Repair {
	v := l.View()
	for i := range v.extents() {
		if x := v.extent(i); x.seg.base == base {
			return &Repair{x: *x}
		}
	}
	return nil
}

// Run verifies the first bytes of from, a file of size bytes, batch by batch, then writes those that differ here and
// syncs. Small batches that are not copied to the file yet are there then. It returns how many bytes from the front
// on are as they must be: all that are committed, or as many as from has. Nothing is written if from does not verify.
// Any goroutine.
func (r *Repair) Run(from io.ReaderAt, size int64) (good int64, err error) {
	good = min(size, r.x.length)
	read := func(dst []byte, pos int64) error { _, err := from.ReadAt(dst, pos); return err }
	if _, err := r.x.verifyAll(read, good, nil, nil); err != nil {
		return 0, fmt.Errorf("segment: what was fetched for %s: %v", r.x.seg.path(), err) // no damage of this file
	}
	if err := r.write(from, good); err != nil {
		return 0, err
	}
	if err := r.x.seg.Sync(); err != nil {
		return 0, err
	}
	_, err = r.x.verifyAll(func(dst []byte, pos int64) error {
		if _, err := r.x.seg.ReadAt(dst, pos); err != nil {
			return r.x.readError(pos, err)
		}
		return nil
	}, good, nil, nil)
	return good, err
}

// write puts the first n bytes of from where they are not. Readers see the old bytes, which they do not accept, or
// the right ones.
func (r *Repair) write(from io.ReaderAt, n int64) error {
	want, have := make([]byte, stride), make([]byte, stride)
	for pos := int64(0); pos < n; pos += stride {
		want, have := want[:min(stride, n-pos)], have[:min(stride, n-pos)]
		if _, err := from.ReadAt(want, pos); err != nil {
			return err
		}
		if _, err := r.x.seg.ReadAt(have, pos); err == nil && bytes.Equal(want, have) {
			continue
		}
		if _, err := r.x.seg.WriteAt(want, pos); err != nil {
			return err
		}
	}
	return nil
}
