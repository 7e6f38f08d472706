package node

import (
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// claim takes the data directory: one process at a time, emptied first with --fresh.
func (n *node) claim() (lock vfs.File, err error) {
	lock, err = journal.LockDir(n.fs, ".")
	if errors.Is(err, vfs.ErrLocked) {
		return nil, fmt.Errorf("data directory %s is in use by another process", n.config.System.Path)
	}
	if err == nil && n.config.Fresh {
		err = n.wipe()
	}
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	return lock, nil
}

// wipe removes everything but the lock.
func (n *node) wipe() error {
	entries, err := n.fs.ReadDir(".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name == "lock" {
			continue
		}
		if err := n.fs.RemoveAll(e.Name); err != nil {
			return err
		}
	}
	return n.fs.SyncDir(".")
}

// identity is the node's own, minted at the first start.
func (n *node) identity() (journal.Identity, error) {
	id := n.evidence.Identity
	if n.evidence.HasIdentity && n.self() == wire.FrontDoorID {
		return id, nil // its id is the cluster's to confirm
	}
	if n.evidence.HasIdentity {
		if id.ID != n.self() {
			return id, fmt.Errorf("the data directory is that of node %d, this is to be node %d", id.ID, n.self())
		}
		return id, nil
	}
	id.ID = n.self()
	_, _ = rand.Read(id.Cluster[:])
	_, _ = rand.Read(id.Node[:])
	if n.self() == wire.FrontDoorID {
		return id, nil // written when the cluster has given it an id
	}
	return id, journal.WriteIdentity(n.fs, ".", id)
}
