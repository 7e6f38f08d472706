package node

import (
	"context"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/metadata"
)

// tardy is metadata that has an op only after so many waits.
type tardy struct {
	asked []uint64
	ready int
}

func (f *tardy) View() *metadata.View     { return nil }
func (f *tardy) Changed() <-chan struct{} { return nil }
func (f *tardy) Wait(op uint64, _ time.Duration) bool {
	f.asked = append(f.asked, op)
	return len(f.asked) >= f.ready
}

// A node opens its partitions on metadata that is as new as its own registration, however long that takes.
func TestRegistrationIsReached(t *testing.T) {
	f := &tardy{ready: 3}
	if !reach(context.Background(), f, 42) || len(f.asked) != 3 || f.asked[2] != 42 {
		t.Errorf("waited for %v", f.asked)
	}
	stopped, stop := context.WithCancel(context.Background())
	stop()
	if reach(stopped, &tardy{ready: 2}, 42) {
		t.Error("a process that stops goes on")
	}
}
