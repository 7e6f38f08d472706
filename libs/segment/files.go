package segment

import (
	"sync"

	"github.com/whippet-mq/whippet/libs/vfs"
)

// defaultOpenFiles bounds the descriptors a process spends on segments.
const defaultOpenFiles = 512

// Files is the cache of open segment files of one process: a file is opened on first use, pinned
// while somebody works with it, and closed when it is the longest unused of more than the limit.
// With the file goes the index read from disk. Safe for concurrent use.
type Files struct {
	limit int

	mu           sync.Mutex
	open         int
	oldest, last *segment // open and unpinned, by time of last use
}

// NewFiles returns a cache of at most limit open files (0: 512). Pinned files are not counted
// against anyone: the limit is exceeded rather than a reader refused.
func NewFiles(limit int) *Files {
	if limit <= 0 {
		limit = defaultOpenFiles
	}
	return &Files{limit: limit}
}

// pinned returns s's open file with one more pin, nil if it is not open.
func (c *Files) pinned(s *segment) vfs.File {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.handle == nil {
		return nil
	}
	if s.pins == 0 {
		c.unlink(s)
	}
	s.pins++
	return s.handle
}

// opened enters a file just opened for s, pinned once, and closes what is over the limit.
func (c *Files) opened(s *segment, f vfs.File) {
	c.mu.Lock()
	s.handle, s.pins = f, 1
	c.open++
	victim := c.evict()
	c.mu.Unlock()
	closeFile(victim)
}

// unpin ends one use. The file of a removed segment is closed with its last pin.
func (c *Files) unpin(s *segment) {
	var victim vfs.File
	c.mu.Lock()
	s.pins--
	if s.pins == 0 {
		if s.isGone() {
			victim = c.take(s)
		} else {
			c.push(s)
			victim = c.evict()
		}
	}
	c.mu.Unlock()
	closeFile(victim)
}

// forget closes s's file as soon as nobody uses it.
func (c *Files) forget(s *segment) {
	var victim vfs.File
	c.mu.Lock()
	if s.handle != nil && s.pins == 0 {
		c.unlink(s)
		victim = c.take(s)
	}
	c.mu.Unlock()
	closeFile(victim)
}

func (c *Files) evict() vfs.File {
	if c.open <= c.limit || c.oldest == nil {
		return nil
	}
	s := c.oldest
	c.unlink(s)
	s.cold.Store(nil)
	return c.take(s)
}

func (c *Files) take(s *segment) vfs.File {
	f := s.handle
	s.handle = nil
	c.open--
	return f
}

func (c *Files) push(s *segment) {
	s.older, s.newer = c.last, nil
	if c.last != nil {
		c.last.newer = s
	} else {
		c.oldest = s
	}
	c.last = s
}

func (c *Files) unlink(s *segment) {
	if s.older != nil {
		s.older.newer = s.newer
	} else {
		c.oldest = s.newer
	}
	if s.newer != nil {
		s.newer.older = s.older
	} else {
		c.last = s.older
	}
	s.older, s.newer = nil, nil
}

// closeFile drops the error: nothing is trusted before Sync said so, and Sync ran or will run on
// a handle of its own.
func closeFile(f vfs.File) {
	if f != nil {
		_ = f.Close()
	}
}
