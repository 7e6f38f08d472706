package journal

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// A log file starts with
//
//	0 magic 8 · 8 version u32 · 12 loop u32 · 16 node 16 · 32 first lsn u64 · 40 end of the log before u64 ·
//	48 position known durable when it was made u64 · 56 hash u64
const (
	fileMagic      = "WHIPWAL\x01"
	fileHeaderSize = 64
	formatVersion  = 1

	firstLSN LSN = 4096

	walPrefix, sparePrefix, checkpointPrefix, copyPrefix = "wal-", "spare-", "checkpoint-", "copy-"
	tempSuffix, damagedSuffix                            = ".tmp", ".damaged"
)

// Owner names the node and loop a file belongs to. A zero Node is not compared.
type Owner struct {
	Node [16]byte
	Loop uint32
}

func (o Owner) put(b []byte) { // 20 bytes: loop, node
	le.PutUint32(b, o.Loop)
	copy(b[4:20], o.Node[:])
}

func (o Owner) owns(b []byte) bool {
	return o.Node == [16]byte{} || le.Uint32(b) == o.Loop && string(b[4:20]) == string(o.Node[:])
}

// logFile is one file of the log. Sizes and positions are bytes from its start.
type logFile struct {
	first   LSN
	prevEnd LSN // where the log before this file ended; 0 = it is the first file
	settled LSN // damage below is not a tear: it was durable when the file was made
	name    string
	file    vfs.File
	size    int64 // allocated
	end     int64 // behind the last record
	heads   headList
	dirty   bool // written since the last sync
	damaged bool // kept aside instead of recycled
	reserve bool // taken from the reserve
	written bool // its blocks were written before: records overwrite them
	plain   bool // making a written file to follow it failed, or is impossible

	headerOK bool
	foreign  bool   // of another owner or format: no part of this log
	reason   string // why the header is not good
}

func (f *logFile) endLSN() LSN { return f.first + LSN(f.end) }

func walName(first LSN) string { return fmt.Sprintf("%s%020d", walPrefix, uint64(first)) }

// numbered reads the number behind prefix in name; false for any other name.
func numbered(name, prefix string) (uint64, bool) {
	digits, ok := strings.CutPrefix(name, prefix)
	if !ok || len(digits) != 20 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil
}

func (f *logFile) putHeader(b []byte, o Owner) {
	b = b[:fileHeaderSize]
	clear(b)
	copy(b, fileMagic)
	le.PutUint32(b[8:], formatVersion)
	o.put(b[12:])
	le.PutUint64(b[32:], uint64(f.first))
	le.PutUint64(b[40:], uint64(f.prevEnd))
	le.PutUint64(b[48:], uint64(f.settled))
	le.PutUint64(b[56:], wire.Hash64(b[:56]))
}

// readHeader takes what the file's header says; f.reason says what is wrong with it, if anything.
func (f *logFile) readHeader(b []byte, o Owner) {
	f.reason = func() string {
		switch {
		case len(b) < fileHeaderSize:
			return "file is shorter than its header"
		case le.Uint64(b[56:]) != wire.Hash64(b[:56]) || string(b[:8]) != fileMagic:
			return "file header is damaged"
		case le.Uint32(b[8:]) != formatVersion:
			f.foreign = true
			return fmt.Sprintf("format version %d is unknown", le.Uint32(b[8:]))
		case !o.owns(b[12:]):
			f.foreign = true
			return "file belongs to another node or loop"
		case le.Uint64(b[32:]) != uint64(f.first):
			return "file header is of an earlier life"
		}
		return ""
	}()
	if f.headerOK = f.reason == ""; f.headerOK {
		f.prevEnd, f.settled = LSN(le.Uint64(b[40:])), LSN(le.Uint64(b[48:]))
	}
}

// headList holds one op per group, in order of first sight.
type headList struct {
	list  []groupHead
	index map[uint64]int
	last  int // index of the group used last
}

type groupHead struct{ group, op uint64 }

func (h *headList) at(group uint64) *groupHead {
	if h.last < len(h.list) && h.list[h.last].group == group {
		return &h.list[h.last]
	}
	i, ok := h.index[group]
	if !ok {
		if h.index == nil {
			h.index = map[uint64]int{}
		}
		i = len(h.list)
		h.index[group] = i
		h.list = append(h.list, groupHead{group: group})
	}
	h.last = i
	return &h.list[i]
}

// raise makes the group's op at least op.
func (h *headList) raise(group, op uint64) {
	e := h.at(group)
	e.op = max(e.op, op)
}

// set makes the group's op op.
func (h *headList) set(group, op uint64) { h.at(group).op = op }

// lower makes the group's op at most op, if it is in the list.
func (h *headList) lower(group, op uint64) {
	if i, ok := h.index[group]; ok {
		h.list[i].op = min(h.list[i].op, op)
	}
}

func (h *headList) reset() {
	h.list = h.list[:0]
	clear(h.index)
	h.last = 0
}
