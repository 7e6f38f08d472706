package segment

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/whippet-mq/whippet/libs/vfs"
)

// countingFS counts the files open at a time.
type countingFS struct {
	vfs.FS
	mu         sync.Mutex
	open, most int
}

type countingFile struct {
	vfs.File
	fs *countingFS
}

func (c *countingFS) took(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open++
	c.most = max(c.most, c.open)
	return &countingFile{f, c}, nil
}

func (c *countingFS) Open(name string) (vfs.File, error)   { return c.took(c.FS.Open(name)) }
func (c *countingFS) Create(name string) (vfs.File, error) { return c.took(c.FS.Create(name)) }

func (f *countingFile) Close() error {
	f.fs.mu.Lock()
	f.fs.open--
	f.fs.mu.Unlock()
	return f.File.Close()
}

func TestFilesStaysBelowItsLimit(t *testing.T) {
	fs := &countingFS{FS: vfs.NewMem(1)}
	files := NewFiles(3)
	var logs []*Log
	for i := range 10 {
		l, _, err := Open(fs, fmt.Sprintf("p/%d", i), Options{Files: files}, State{})
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, l)
	}
	for round := range uint64(3) {
		for i, l := range logs {
			b := batchOf(round, round+1, 0, []message{{payload: bytes.Repeat([]byte{byte(i)}, 1000)}})
			l.Append(b, 1)
			l.Publish(round + 1)
			f := l.FlushPlan(0, true)
			if err := f.Run(); err != nil {
				t.Fatal(err)
			}
			l.Flushed(f, nil)
		}
	}
	for i, l := range logs {
		p, _ := l.View().Plan(Query{First, 0, 10}, 0)
		dst := make([]byte, p.Size())
		if n, err := p.Read(dst); err != nil || p.Messages() != 3 || dst[n-1] != byte(i) {
			t.Fatalf("log %d: %d messages, %v", i, p.Messages(), err)
		}
	}
	if fs.most > 4 { // one is opened before the oldest is closed
		t.Errorf("%d files open at once", fs.most)
	}
	for _, l := range logs {
		l.Close()
	}
	if fs.open != 0 {
		t.Errorf("%d files left open", fs.open)
	}
}

// TestIdlePartitionsCostNothing: no file, no name on disk, no call to the file system.
func TestIdlePartitionsCostNothing(t *testing.T) {
	l, _, err := Open(nil, "p/1", Options{}, State{})
	if err != nil {
		t.Fatal(err)
	}
	if _, o := l.View().Plan(Query{Last, 0, 10}, 0); o != Empty {
		t.Error("an empty log has something to read")
	}
	if l.FlushPlan(1<<60, true) != nil {
		t.Error("an empty log has something to flush")
	}
	c := l.Checkpoint()
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	l.Checkpointed(c, nil)
}

// TestFlushPolicy: 256 KiB, 5 s, a closed segment, or force.
func TestFlushPolicy(t *testing.T) {
	const second = 1_000_000_000
	l, _, err := Open(vfs.NewMem(1), "p/1", Options{SegmentSize: 1 << 20}, State{})
	if err != nil {
		t.Fatal(err)
	}
	next := uint64(0)
	add := func(n, size int) {
		for range n {
			appendSized(l, next, next+1, size)
			next++
		}
		l.Publish(next)
	}
	due := func(now int64, want bool) {
		t.Helper()
		f := l.FlushPlan(now, false)
		if (f != nil) != want {
			t.Fatalf("at %d s, %d bytes wait: due %v", now/second, l.Stats().Unflushed, f != nil)
		}
		if f != nil {
			if l.FlushPlan(now, true) != nil {
				t.Fatal("two flushes at a time")
			}
			if err := f.Run(); err != nil {
				t.Fatal(err)
			}
			l.Flushed(f, nil)
			if l.Stats().Unflushed != 0 {
				t.Fatal("bytes left")
			}
		}
	}
	due(0, false)
	add(1, 1000)
	due(100*second, false)
	due(104*second, false)
	due(105*second, true)
	add(255, 1024)
	due(200*second, false)
	add(1, 1024)
	due(200*second, true)
	add(12, 64<<10) // fills the segment
	due(300*second, true)
	add(1, 1000)
	if f := l.FlushPlan(300*second, true); f == nil {
		t.Fatal("force")
	} else {
		l.Flushed(f, vfs.ErrLocked) // any error
	}
	if l.Stats().Unflushed != 1000 {
		t.Fatal("a failed flush forgot its bytes")
	}
	due(306*second, true)
}
