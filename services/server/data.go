package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/service"
	"github.com/whippet-mq/whippet/libs/vfs"
)

// open takes the data directory: one process at a time, emptied first with --fresh.
func (n *node) open() (lock vfs.File, err error) {
	path := n.config.System.Path
	if err := mkdir(path); err != nil {
		return nil, service.WithExit(service.ExitConfig, fmt.Errorf("data directory: %w", err))
	}
	n.fs = vfs.NewOS(path)
	lock, err = n.fs.Lock("lock")
	if errors.Is(err, vfs.ErrLocked) {
		return nil, fmt.Errorf("data directory %s is in use by another process", path)
	}
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if n.config.Fresh {
		if err := wipe(path); err != nil {
			return nil, fmt.Errorf("data directory: %w", err)
		}
	}
	if err := n.config.RemoveCurrent(); err != nil {
		return nil, err
	}
	n.pool = buffer.NewPool(int64(n.config.Limits.Memory))
	return lock, nil
}

// wipe removes everything but the lock.
func wipe(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == "lock" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(path, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// suspect says whether page cache may have been lost since the last run.
func (n *node) suspect() bool { return false }

// closeSession notes that everything is synced.
func (n *node) closeSession() error { return nil }
