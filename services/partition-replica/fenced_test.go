package partitionreplica

import (
	"errors"
	"strings"
	"testing"

	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// deaf is a file system whose segment files can not be looked at.
type deaf struct{ vfs.FS }

func (d deaf) Stat(name string) (vfs.Entry, error) {
	if strings.HasSuffix(name, ".log") {
		return vfs.Entry{}, errors.New("input/output error")
	}
	return d.FS.Stat(name)
}

// TestUnreadablePartitionIsNotForgotten: a partition that one start can not read is refused in that
// life, and what is known of it goes on to the next, through a clean stop's checkpoint.
func TestUnreadablePartitionIsNotForgotten(t *testing.T) {
	mem := vfs.NewMem(1)
	w := open(t, mem, false)
	w.topic(1)
	for range 3 {
		w.send(0, "x")
	}
	w.close()

	w = open(t, deaf{mem}, false)
	if c := w.send(0, "y"); c.Status != wire.CodeCannotSaveMessagesToSegment {
		t.Fatalf("a send to an unreadable partition: status %v", c.Status)
	}
	w.close()

	w = open(t, mem, false)
	if n := w.poll(plain(1), 0, 10, false); n != 3 {
		t.Errorf("%d messages once the disk answers again, want 3", n)
	}
	if next := w.find(w.group(0)).log.Next(); next != 3 {
		t.Errorf("the next message would get offset %d, which denoted another", next)
	}
	w.close()
}
