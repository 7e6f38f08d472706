package journal

import (
	"errors"
	"fmt"

	"github.com/whippet-mq/whippet/libs/vfs"
)

// Evidence is what a data directory tells about the life before: whether page cache may have been
// lost, and which groups that concerns (rules D2, D5).
type Evidence struct {
	Identity    Identity
	HasIdentity bool // false: the node starts for the first time
	Session     Session
	HasSession  bool
	// Suspect: the machine may have lost what was not synced. Options.Suspect of the journals.
	Suspect bool
	// Epoch is the suspect epoch in force from now on: Session.Epoch, raised if Suspect.
	Epoch   uint64
	Corrupt []Damage

	sequence uint64 // of the session's slots
}

// LoadEvidence reads identity and session record of a data directory. Damage is reported in Corrupt
// and makes the boot suspect; an identity whose file is lost is taken from the session record.
func LoadEvidence(fs vfs.FS, dir string) (*Evidence, error) {
	e := &Evidence{}
	if err := e.loadIdentity(fs, dir+"/"+identityName); err != nil {
		return nil, err
	}
	if err := e.loadSession(fs, dir+"/"+sessionName); err != nil {
		return nil, err
	}
	if !e.HasIdentity && e.HasSession {
		e.Identity, e.HasIdentity = e.Session.Identity, true
		e.damage(identityName, "file is lost; the identity is taken from the session record")
		if err := WriteIdentity(fs, dir, e.Identity); err != nil {
			return nil, err
		}
	}
	e.Epoch = e.Session.Epoch
	if e.Suspect = e.suspect(fs, dir+"/"+sessionName); e.Suspect {
		e.Epoch++
	}
	return e, nil
}

func (e *Evidence) damage(file, reason string) {
	e.Corrupt = append(e.Corrupt, Damage{File: file, Reason: reason, Kept: file + damagedSuffix})
}

func (e *Evidence) loadIdentity(fs vfs.FS, name string) error {
	payload, _, _, damage, err := readSlots(fs, name, identityMagic)
	if vfs.IsNotExist(err) {
		return nil
	}
	e.Corrupt = append(e.Corrupt, damage...)
	if err != nil && !errors.Is(err, errNoSlot) {
		return err
	}
	if e.HasIdentity = err == nil && e.Identity.decode(payload); !e.HasIdentity || len(damage) == 0 {
		return nil
	}
	return WriteIdentity(fs, name[:len(name)-len("/"+identityName)], e.Identity)
}

func (e *Evidence) loadSession(fs vfs.FS, name string) error {
	payload, _, sequence, damage, err := readSlots(fs, name, sessionMagic)
	if vfs.IsNotExist(err) {
		return nil
	}
	if err != nil && !errors.Is(err, errNoSlot) {
		return err
	}
	// One block may be torn by the crash; the other one then tells of the life before, which is open.
	e.HasSession = err == nil && e.Session.decode(payload)
	e.sequence = sequence
	if !e.HasSession || len(damage) > 0 && e.Session.Closed {
		e.Corrupt = append(e.Corrupt, damage...)
	}
	return nil
}

// suspect applies D5 to what was read.
func (e *Evidence) suspect(fs vfs.FS, name string) bool {
	switch {
	case !e.HasIdentity && !e.HasSession && len(e.Corrupt) == 0:
		return false // first start
	case !e.HasSession:
		return true
	case e.Session.Closed:
		return false
	}
	entry, err := fs.Stat(name)
	return err != nil || e.Session.BootID != fs.BootID() || e.Session.Inode != entry.Inode || e.Session.BirthTime != entry.BirthTime
}

// End is the durable end of a loop's log: Options.Durable.
func (e *Evidence) End(loop int) LSN {
	if !e.Session.Closed || loop >= len(e.Session.Ends) {
		return 0
	}
	return e.Session.Ends[loop]
}

// GroupState says how far a group's log may be trusted after a boot.
type GroupState uint8

const (
	Whole   GroupState = iota + 1 // holds everything it ever acknowledged
	Born                          // never acted: a partition group without vote and records
	Suspect                       // may have lost what it acknowledged
	Empty                         // a metadata member without vote and records: it may have lost everything
)

func (s GroupState) String() string {
	if s >= Whole && s <= Empty {
		return [...]string{"whole", "born", "suspect", "empty"}[s-1]
	}
	return fmt.Sprintf("state %d", s)
}

// Judge applies D5 to one group: vote is its vote record, nil if it has none; synced says that it
// acknowledges only what is synced.
func (e *Evidence) Judge(vote *Vote, records, synced, metadata bool) GroupState {
	switch {
	case vote == nil && !records && metadata:
		return Empty
	case vote == nil && !records:
		return Born
	case vote == nil:
		return Suspect
	case vote.Epoch >= e.Epoch, synced && vote.Epoch >= e.Session.HardEpoch:
		return Whole
	}
	return Suspect
}
