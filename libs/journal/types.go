package journal

import (
	"errors"
	"strconv"

	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// LSN is a byte position in a log; it only grows over the life of a data directory. 0 means none.
type LSN uint64

// InlineLimit is the largest body, in bytes, that belongs into its record; larger ones go to their
// segment first.
const InlineLimit = 64 << 10

// Kind says what a record does to its group.
type Kind uint8

const (
	// KindPrepare appends an entry: Record.Op must be one above the group's head.
	KindPrepare Kind = 1
	// KindTruncate removes the entries and the adopted headers from Op on.
	KindTruncate Kind = 2
	// KindBorn starts an empty group; what an earlier group of this id left is dropped.
	KindBorn Kind = 3
	// KindGone ends a group and drops its entries and image.
	KindGone Kind = 4

	// KindAdopt says which ops the log of a view has above the group's head, in place of what an
	// earlier one said; see AdoptRecord and GroupLog.Adopted. An entry that is appended takes the
	// place of its adopted header, and of those below. A truncate record removes the adopted headers
	// from its Op on with the entries, so all of them if Op is not above the head: to keep their
	// names, an adopt record follows it in the same round. Born and gone drop them.
	KindAdopt Kind = 6

	// kindSynced is the journal's own: op is the position known durable when it was written.
	kindSynced Kind = 5
)

func (k Kind) String() string {
	switch k {
	case KindPrepare:
		return "prepare"
	case KindTruncate:
		return "truncate"
	case KindBorn:
		return "born"
	case KindGone:
		return "gone"
	case KindAdopt:
		return "adopt"
	case kindSynced:
		return "synced"
	}
	return "kind " + strconv.Itoa(int(k))
}

// Location is where a large body stands in its group's segments.
type Location struct {
	Segment uint64 // base offset of the segment
	Pos     int64  // byte position in its file
	Len     int64  // bytes; 0 = the body is inline
	Hash    uint64 // XXH3-64 of the body
}

// Record is one change of one group. Frame is read until the round is done and must not change
// before; it is the 256-byte prepare header followed by the inline body, the header alone when
// At.Len > 0, what AdoptRecord makes for KindAdopt, and empty for other kinds.
type Record struct {
	Kind  Kind
	Group uint64
	Op    uint64
	Frame []byte
	At    Location
}

// LargeBody is a body that is written to its segment file before the records of its round. With
// Sync it is durable before they are written.
type LargeBody struct {
	File vfs.File
	Pos  int64
	Data []byte
	Sync bool
}

// Round is what a loop submits at once. The journal borrows it, and all bytes it names, until it is done.
type Round struct {
	Seq      uint64
	Records  []Record
	Large    []LargeBody
	Sync     bool // done means synced, else written
	Reserved bool // may use the space kept back for a full disk: only what frees or bounds space
}

// Done is the completion of a round. LSN is the position behind the round's records; with Synced
// everything below it is durable.
type Done struct {
	Seq    uint64
	LSN    LSN
	Synced bool
	Err    error
}

// Image is one group in a checkpoint. State is opaque to the journal: the state machine's after Op.
type Image struct {
	Group, Op, Commit uint64
	Head              [wire.HeaderSize]byte // header of the prepare Op; zero if Op is 0
	State             []byte
	// Adopted and AdoptView are those of GroupLog as the completed rounds left them.
	Adopted   []wire.PrepareHeader
	AdoptView uint32
	// Fenced: the group is out of service. Checkpoint sets it for groups that recovery found faulty
	// until Heal, or a born or gone record, says otherwise.
	Fenced bool
	// Settled: the log holds no record of the group below the checkpoint's position and above Op, so
	// damage there is none of the group's.
	Settled bool
}

// Errors of the write side. ErrFull leaves the journal usable: nothing of the round is in the log.
// After ErrFailed (a failed write or sync) nothing may be trusted to be durable: every later call fails.
var (
	ErrFull   = errors.New("journal: no space")
	ErrFailed = errors.New("journal: failed")
	ErrClosed = errors.New("journal: closed")
	// ErrDropped is the error of Body for an entry whose log file a checkpoint let go.
	ErrDropped = errors.New("journal: entry is no longer in the log")
	// ErrDamaged is the error of Body for an entry that fails its checksum.
	ErrDamaged = errors.New("journal: entry is damaged")
)

// Recovered is what Open found.
type Recovered struct {
	Groups     []GroupLog // ascending group id
	End        LSN        // where the recovered log ended
	Checkpoint LSN        // position of the checkpoint used; 0 = none
	// Durable is the position below which everything was known durable. After a power cut an entry
	// above it whose large body does not verify was never acknowledged as synced: its owner cuts the
	// group's log there. Below, and after a kill, it is corruption.
	Durable LSN
	Torn    int64 // bytes cut from the tail by the tear rule
	TornOps int   // prepares known to be among them; more may have left no trace
	// Unsure: records were lost, and nothing in the log tells of which groups. One that is not among
	// Groups may have had some.
	Unsure  bool
	Corrupt []Damage // what was found damaged, in log order; empty on a healthy directory
}

// GroupLog is one group: its image, if any, and the entries above it in ascending op order. Without
// faults the ops are contiguous from Image.Op+1 (or 1) on.
type GroupLog struct {
	Group   uint64
	Image   *Image
	Entries []Entry
	Gone    bool // a Gone record ended it; no image, no entries
	Born    bool // a Born record is in the log above the image
	// Adopted are the ops that the log of view AdoptView has above Head, newest first and without
	// gaps, down to Head+1. AdoptView is the view of the last adopt record, also when nothing of it
	// is left; 0 = there was none.
	Adopted   []wire.PrepareHeader
	AdoptView uint32
	// AdoptUnsure: records were lost, and an adopt record of this group may be among them. A group of
	// one has none; a member of several has a log that is not to be trusted with a nack.
	AdoptUnsure bool
	// Commit is the highest op known committed: by the image and by the commit points in the headers
	// of good entries. With several members what the log holds above it may or may not be.
	Commit uint64
	Faults []Fault
}

// Head is the highest op the group has, 0 if none.
func (g *GroupLog) Head() uint64 {
	if n := len(g.Entries); n > 0 {
		return g.Entries[n-1].Header.Op
	}
	if g.Image != nil {
		return g.Image.Op
	}
	return 0
}

// Entry is one recovered prepare. With Damaged its record failed the checksum: Header holds Op and
// Group, and the rest only if the header's own identity still held (Header.Checksum non-zero).
type Entry struct {
	Header  wire.PrepareHeader
	At      Location // At.Len > 0: the body is in a segment, the owner verifies it
	LSN     LSN
	Damaged bool

	length uint32 // of its record
}

// FaultKind says how damage hit a group.
type FaultKind uint8

const (
	// FaultDamaged: the entries From..To are in the log but fail their checksums (Entry.Damaged).
	FaultDamaged FaultKind = iota + 1
	// FaultMissing: the entries From..To are lost.
	FaultMissing
	// FaultUnsure: records behind From-1 may be lost; nothing in the log proves otherwise.
	FaultUnsure
	// FaultImage: the group's image in the checkpoint is damaged or lost; entries above may follow.
	FaultImage
	// FaultRecord: a truncate, born or gone record of the group is damaged.
	FaultRecord
	// FaultOrder: an entry replaced another one without a truncate record.
	FaultOrder
	// FaultFenced: an earlier recovery found a fault, and nobody healed it since.
	FaultFenced
)

func (k FaultKind) String() string {
	names := [...]string{"", "damaged entries", "missing entries", "possibly missing entries", "damaged image", "damaged record", "entry out of order", "fenced earlier"}
	if int(k) < len(names) {
		return names[k]
	}
	return "fault " + strconv.Itoa(int(k))
}

// Fault is one finding about one group; From and To are ops (inclusive), LSN is where it was found.
type Fault struct {
	Kind     FaultKind
	From, To uint64
	LSN      LSN
}

// Damage is one damaged range of one file. Kept is the name the file is (or will be) kept aside under.
type Damage struct {
	File   string
	Pos    int64
	Len    int64
	Reason string
	Kept   string
}
