package journal

import (
	"errors"
	"fmt"
	"path"

	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// slotFile holds one small record in two blocks, written in turn or both: a torn write or a damaged
// block leaves the other one. It never changes its size, so it can be written on a full disk.
//
// A block is 0 magic 8 · 8 version u32 · 12 length u32 · 16 sequence u64 · 24 node 16 · 40 hash u64 · 48 payload.
// The hash covers the block without itself.
type slotFile struct {
	fs       vfs.FS
	name     string
	file     vfs.File
	magic    string
	sequence uint64
}

const (
	slotSize   = 4096
	slotHeader = 48
	slotLimit  = slotSize - slotHeader
)

var errNoSlot = errors.New("no intact record")

// readSlots reads the newest record of a slot file. The damage lists blocks that hold none though
// they should; err is vfs' not-exist error, errNoSlot, or a read error.
func readSlots(fs vfs.FS, name, magic string) (payload []byte, node [16]byte, sequence uint64, damage []Damage, err error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, node, 0, nil, err
	}
	defer f.Close()
	for i := range int64(2) {
		b := make([]byte, slotSize)
		n, readErr := f.ReadAt(b, i*slotSize)
		p, owner, seq, reason := decodeSlot(b[:n], magic)
		switch {
		case n < slotSize && readErr != nil && n > 0:
			reason = "block is cut short"
		case n == 0 && readErr != nil:
			reason = "block is missing"
		}
		if reason != "" {
			damage = append(damage, Damage{File: name, Pos: i * slotSize, Len: slotSize, Reason: reason})
			continue
		}
		if payload == nil || seq > sequence {
			payload, node, sequence = p, owner, seq
		}
	}
	if payload == nil {
		err = fmt.Errorf("%s: %w", name, errNoSlot)
	}
	return payload, node, sequence, damage, err
}

func decodeSlot(b []byte, magic string) (payload []byte, node [16]byte, sequence uint64, reason string) {
	if len(b) < slotSize {
		return nil, node, 0, "block is cut short"
	}
	n := le.Uint32(b[12:])
	switch {
	case string(b[:8]) != magic || n > slotLimit || le.Uint64(b[40:]) != slotHash(b):
		return nil, node, 0, "block fails its checksum"
	case le.Uint32(b[8:]) != formatVersion:
		return nil, node, 0, fmt.Sprintf("format version %d is unknown", le.Uint32(b[8:]))
	}
	copy(node[:], b[24:40])
	return b[slotHeader : slotHeader+n : slotHeader+n], node, le.Uint64(b[16:]), ""
}

func slotHash(b []byte) uint64 { return wire.Hash64(b[:40]) ^ wire.Hash64(b[slotHeader:slotSize])*3 }

func encodeSlot(magic string, node [16]byte, sequence uint64, payload []byte) []byte {
	b := make([]byte, slotSize)
	copy(b, magic)
	le.PutUint32(b[8:], formatVersion)
	le.PutUint32(b[12:], uint32(len(payload)))
	le.PutUint64(b[16:], sequence)
	copy(b[24:40], node[:])
	copy(b[slotHeader:], payload)
	le.PutUint64(b[40:], slotHash(b))
	return b
}

// openSlots opens the file for writing, making it with both blocks holding the record if it does
// not exist or holds nothing intact. A file that holds nothing intact is kept aside.
func openSlots(fs vfs.FS, name, magic string, sequence uint64, fresh bool, node [16]byte, payload []byte) (*slotFile, error) {
	s := &slotFile{fs: fs, name: name, magic: magic, sequence: sequence}
	var err error
	if !fresh {
		s.file, err = fs.Open(name)
		if err != nil {
			return nil, err
		}
		return s, s.write(node, payload)
	}
	if _, err := fs.Stat(name); err == nil {
		if err := fs.Rename(name, name+damagedSuffix); err != nil {
			return nil, err
		}
	}
	temp := name + tempSuffix
	if err := fs.Remove(temp); err != nil && !vfs.IsNotExist(err) {
		return nil, err
	}
	if s.file, err = fs.Create(temp); err != nil {
		return nil, err
	}
	s.sequence++
	b := encodeSlot(magic, node, s.sequence, payload)
	if _, err = s.file.WriteVec([][]byte{b, b}, 0); err == nil {
		err = s.file.Sync()
	}
	if err == nil {
		err = fs.Rename(temp, name)
	}
	if err == nil {
		err = fs.SyncDir(path.Dir(name))
	}
	if err != nil {
		return nil, errors.Join(err, s.file.Close())
	}
	return s, nil
}

// write makes the record durable in the block that does not hold the one before.
func (s *slotFile) write(node [16]byte, payload []byte) error {
	s.sequence++
	b := encodeSlot(s.magic, node, s.sequence, payload)
	if _, err := s.file.WriteAt(b, int64(s.sequence%2)*slotSize); err != nil {
		return err
	}
	return s.file.Sync()
}
