package frontdoor

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"

	"github.com/whippet-mq/whippet/libs/wire"
)

// archiveSpec says what a diagnostic archive contains.
type archiveSpec struct {
	stored bool
	types  []wire.SnapshotType
}

// snapshot builds the archive. One is built at a time: it reads files and walks the process.
// Compressions that the zip format of most readers does not know are answered with deflate; an
// archive names its own method.
func (c *Core) snapshot(spec archiveSpec) ([]byte, error) {
	if !c.archiving.CompareAndSwap(false, true) {
		return nil, wire.CodeSnapshotFileCompletionFailed
	}
	defer c.archiving.Store(false)
	method := zip.Deflate
	if spec.stored {
		method = zip.Store
	}
	var buf bytes.Buffer
	archive := zip.NewWriter(&buf)
	for _, t := range spec.types {
		text, err := c.section(t)
		if err != nil {
			continue // a section that cannot be had is left out
		}
		entry, err := archive.CreateHeader(&zip.FileHeader{Name: t.FileName(), Method: method})
		if err != nil {
			return nil, wire.CodeSnapshotFileCompletionFailed
		}
		_, _ = entry.Write(text)
	}
	if archive.Close() != nil || buf.Len()+wire.HeaderSize > wire.MaxFrameSize {
		return nil, wire.CodeSnapshotFileCompletionFailed
	}
	return buf.Bytes(), nil
}

func (c *Core) section(t wire.SnapshotType) ([]byte, error) {
	switch t {
	case wire.SnapshotFilesystem:
		return c.filesystemText()
	case wire.SnapshotProcesses:
		return c.processText()
	case wire.SnapshotResourceUsage:
		return c.usageText()
	case wire.SnapshotTest:
		return []byte("test\n"), nil
	case wire.SnapshotServerLogs:
		if c.cfg.LogText != nil {
			return c.cfg.LogText(), nil
		}
	case wire.SnapshotServerConfig:
		if c.cfg.ConfigText != nil {
			return c.cfg.ConfigText(), nil
		}
	}
	return nil, os.ErrNotExist
}

// filesystemText lists the data directory, two levels deep.
func (c *Core) filesystemText() ([]byte, error) {
	var b bytes.Buffer
	var h hostFigures
	c.host.disk(&h)
	fmt.Fprintf(&b, "free %d of %d bytes\n", h.FreeDisk, h.TotalDisk)
	err := filepath.WalkDir(c.cfg.DataDir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		rel, _ := filepath.Rel(c.cfg.DataDir, path)
		if strings.Count(rel, string(filepath.Separator)) > 1 {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if info, err := d.Info(); err == nil {
			fmt.Fprintf(&b, "%s %12d %s\n", info.Mode(), info.Size(), rel)
		}
		return nil
	})
	return b.Bytes(), err
}

// processText describes this process; others are none of the broker's business.
func (c *Core) processText() ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "pid %d, %s, go %s, %d goroutines\n\n", os.Getpid(), filepath.Base(os.Args[0]), runtime.Version(), runtime.NumGoroutine())
	return b.Bytes(), pprof.Lookup("goroutine").WriteTo(&b, 1)
}

func (c *Core) usageText() ([]byte, error) {
	var b bytes.Buffer
	var h hostFigures
	c.host.read(&h)
	fmt.Fprintf(&b, "cpu %.1f %% of the machine's %.1f %%\nresident %d bytes\nmemory available %d of %d bytes\nthreads %d\nup %d s\n",
		h.CPU, h.TotalCPU, h.Memory, h.AvailableMemory, h.TotalMemory, h.Threads, h.RunTime/1_000_000)
	fmt.Fprintf(&b, "buffers %d of %d bytes\n", c.deps.Pool.Used(), c.deps.Pool.Budget())
	return b.Bytes(), nil
}
