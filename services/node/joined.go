package node

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/whippet-mq/whippet/libs/service"
	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// joined is the metadata revision at which this data directory became part of a roster: the node of that
// id may have had data of every partition that is older, on a disk that is gone. It is written once.
type joined struct {
	node  *node
	known atomic.Pointer[uint64]
}

// The file: the revision u64, then Hash64 of it.
const (
	joinedFile = "joined"
	joinedSize = 16
	joinedLook = 20 * time.Millisecond
)

// openJoined reads the revision; it is not known in the first life until the metadata is.
func (n *node) openJoined() (*joined, error) {
	j := &joined{node: n}
	f, err := n.fs.Open(joinedFile)
	if vfs.IsNotExist(err) {
		return j, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var b [joinedSize]byte
	if _, err := f.ReadAt(b[:], 0); err != nil || binary.LittleEndian.Uint64(b[8:]) != wire.Hash64(b[:8]) {
		return nil, fmt.Errorf("%s is damaged: the data directory can not be told from a new one", joinedFile)
	}
	revision := binary.LittleEndian.Uint64(b[:])
	j.known.Store(&revision)
	return j, nil
}

func (j *joined) revision() (uint64, bool) {
	if r := j.known.Load(); r != nil {
		return *r, true
	}
	return 0, false
}

// takePart waits until the metadata member of this process has everything that was committed when it came,
// then lets the process count as ready, and writes down how far the metadata is if it is new here.
func (n *node) takePart() {
	if !n.awaitMember() {
		return
	}
	if n.member != nil {
		n.member.Hold()
	}
	if n.joined == nil {
		return
	}
	if _, known := n.joined.revision(); known {
		return
	}
	revision := n.metadata.View().Revision
	if err := n.joined.write(revision); err != nil {
		n.die(service.ExitFailed, fmt.Errorf("%s: %w", joinedFile, err))
		return
	}
	n.joined.known.Store(&revision)
}

// awaitMember returns false when the process stops before.
func (n *node) awaitMember() bool {
	head, settled := uint64(0), false
	look := time.NewTicker(joinedLook)
	defer look.Stop()
	for done := false; !done; {
		select {
		case <-n.ending.Done():
			return false
		case <-look.C:
		}
		if !n.metadata.Engine().Wait(func() {
			g := n.metadataGroup()
			if !settled && g.Settled() {
				head, settled = g.Head(), true
			}
			done = settled && g.Applied() >= head
		}) {
			return false
		}
	}
	return true
}

func (j *joined) write(revision uint64) error {
	b := binary.LittleEndian.AppendUint64(nil, revision)
	b = binary.LittleEndian.AppendUint64(b, wire.Hash64(b))
	const beside = joinedFile + ".new"
	fs := j.node.fs
	if err := fs.RemoveAll(beside); err != nil {
		return err
	}
	f, err := fs.Create(beside)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(b, 0); err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = fs.Rename(beside, joinedFile)
	}
	if err == nil {
		err = fs.SyncDir(".")
	}
	return err
}
