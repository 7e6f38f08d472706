package journal

import (
	"errors"

	"github.com/whippet-mq/whippet/libs/vfs"
)

const (
	identityMagic = "WHIPNID\x01"
	sessionMagic  = "WHIPSES\x01"

	identityName, sessionName, votesName, lockName = "identity", "session", "votes", "lock"
)

// Identity names a node for ever: written once, at its first start.
type Identity struct {
	Cluster, Node [16]byte // UUIDs
	ID            uint8    // node id in the cluster
}

func (i *Identity) append(b []byte) []byte {
	b = append(b, i.Cluster[:]...)
	b = append(b, i.Node[:]...)
	return append(b, i.ID)
}

func (i *Identity) decode(b []byte) bool {
	if len(b) < 33 {
		return false
	}
	copy(i.Cluster[:], b)
	copy(i.Node[:], b[16:])
	i.ID = b[32]
	return true
}

// WriteIdentity makes the identity file of a data directory that has none.
func WriteIdentity(fs vfs.FS, dir string, id Identity) error {
	s, err := openSlots(fs, dir+"/"+identityName, identityMagic, 0, true, id.Node, id.append(nil))
	if err != nil {
		return err
	}
	return s.file.Close()
}

// Session is the record of one life of a node: rule D2. It is open from before the first frame until a
// graceful stop has made everything durable.
type Session struct {
	Identity  Identity // a second copy
	Sequence  uint64   // lives so far
	BootID    string   // at most 255 bytes
	Inode     uint64   // of the session file
	BirthTime int64
	Closed    bool
	// Epoch is the suspect epoch: a group in default mode is whole if its vote carries it. HardEpoch
	// is the last epoch raised by a failed sync: it holds for groups in synced mode too.
	Epoch, HardEpoch uint64
	Ends             []LSN // end of each loop's log at a graceful stop
}

func (s *Session) append(b []byte) []byte {
	b = s.Identity.append(b)
	for _, v := range []uint64{s.Sequence, s.Inode, uint64(s.BirthTime), s.Epoch, s.HardEpoch} {
		b = le.AppendUint64(b, v)
	}
	closed := byte(0)
	if s.Closed {
		closed = 1
	}
	b = append(b, closed, byte(len(s.BootID)))
	b = append(b, s.BootID...)
	b = le.AppendUint32(b, uint32(len(s.Ends)))
	for _, e := range s.Ends {
		b = le.AppendUint64(b, uint64(e))
	}
	return b
}

func (s *Session) decode(b []byte) bool {
	if !s.Identity.decode(b) || len(b) < 33+42 {
		return false
	}
	b = b[33:]
	s.Sequence, s.Inode, s.BirthTime = le.Uint64(b), le.Uint64(b[8:]), int64(le.Uint64(b[16:]))
	s.Epoch, s.HardEpoch = le.Uint64(b[24:]), le.Uint64(b[32:])
	s.Closed = b[40] == 1
	n := int(b[41])
	if b = b[42:]; len(b) < n+4 {
		return false
	}
	s.BootID, b = string(b[:n]), b[n:]
	ends := int(le.Uint32(b))
	if b = b[4:]; len(b) < ends*8 {
		return false
	}
	for i := range ends {
		s.Ends = append(s.Ends, LSN(le.Uint64(b[i*8:])))
	}
	return true
}

// Life is the open session of a running node.
type Life struct {
	Session Session
	file    *slotFile
}

// Begin writes the session record of a new life; the node sends nothing before it returns. Journals
// are opened before, with e.Suspect, because the record takes the evidence away.
func (e *Evidence) Begin(fs vfs.FS, dir string, id Identity) (*Life, error) {
	s := Session{
		Identity: id, Sequence: e.Session.Sequence + 1, BootID: fs.BootID(),
		Epoch: e.Epoch, HardEpoch: e.Session.HardEpoch,
	}
	l := &Life{Session: s}
	name := dir + "/" + sessionName
	var err error
	if l.file, err = openSlots(fs, name, sessionMagic, e.sequence, !e.HasSession, id.Node, s.append(nil)); err != nil {
		return nil, err
	}
	entry, err := fs.Stat(name)
	if err == nil {
		l.Session.Inode, l.Session.BirthTime = entry.Inode, entry.BirthTime
		err = l.save()
	}
	if err != nil {
		return nil, errors.Join(err, l.file.file.Close())
	}
	return l, nil
}

func (l *Life) save() error { return l.file.write(l.Session.Identity.Node, l.Session.append(nil)) }

// RaiseSuspect notes that a sync failed: every group of the node, in synced mode too, is suspect
// from now on. The process stops after it, whether this succeeds or not.
func (l *Life) RaiseSuspect() error {
	l.Session.Epoch++
	l.Session.HardEpoch = l.Session.Epoch
	return l.save()
}

// End closes the session: everything is durable, and the loops' logs end at ends.
func (l *Life) End(ends []LSN) error {
	l.Session.Closed, l.Session.Ends = true, ends
	return errors.Join(l.save(), l.file.file.Close())
}

// LockDir takes the lock of a data directory, which it makes if need be; vfs.ErrLocked if another
// process holds it. Closing the file gives it back.
func LockDir(fs vfs.FS, dir string) (vfs.File, error) {
	if err := fs.MkdirAll(dir); err != nil {
		return nil, err
	}
	return fs.Lock(dir + "/" + lockName)
}
