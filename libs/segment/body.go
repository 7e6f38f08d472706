package segment

import (
	"errors"

	"github.com/whippet-mq/whippet/libs/wire"
)

var errOtherBatch = errors.New("segment: not the recorded batch")

// Bodies returns a function that reads a large batch back from where a journal record says it stands,
// into dst, which has its length. Any goroutine may call it, later too; batches that a trim or a purge
// took are gone then.
func (l *Log) Bodies() func(at Location, dst []byte) error {
	life := l.life
	return func(at Location, dst []byte) error {
		seg := newSegment(life, at.Segment)
		defer life.files.forget(seg)
		if _, err := seg.ReadAt(dst, at.Pos); err != nil {
			return err
		}
		if len(dst) < headerSize || wire.Hash64(dst[:headerSize]) != at.Hash {
			return errOtherBatch
		}
		return nil
	}
}
