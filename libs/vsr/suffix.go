package vsr

import "github.com/whippet-mq/whippet/libs/wire"

// report says what this member knows of its log, for a DoViewChange. Entries of the log are present.
// Entries that the log of logView has and this member never had are named, so that the log does not end
// in front of them, and denied, for they were never acknowledged here. Those it had and cannot read any
// more are named only; of what lies between nothing is said. An op above all of these is denied by the
// head.
func (r *Replica) report() Report {
	d := Report{Member: r.group.Self, LogView: r.logView, Head: r.tail.head, Suspect: r.state != Whole}
	if len(r.names) > 0 {
		d.Head = max(d.Head, r.names[0].Op)
	}
	d.Commit = min(r.known, d.Head)
	low := max(min(r.known, r.tail.head), 1)
	for op := d.Head; op >= low && len(d.Suffix) < wire.MaxSuffix; op-- {
		i := len(d.Suffix)
		if h := r.tail.header(op); h != nil {
			d.Suffix = append(d.Suffix, *h)
			d.Present = d.Present.WithBit(i)
		} else if h := named(r.names, op); h != nil {
			d.Suffix = append(d.Suffix, *h)
			if op > r.doubt {
				d.Nack = d.Nack.WithBit(i)
			}
		} else {
			d.Suffix = append(d.Suffix, wire.BlankPrepare(op))
		}
	}
	return d
}

// named returns the header at op of a list that goes down from its first op without gaps.
func named(list []wire.PrepareHeader, op uint64) *wire.PrepareHeader {
	if len(list) == 0 || op > list[0].Op || list[0].Op-op >= uint64(len(list)) {
		return nil
	}
	if h := &list[list[0].Op-op]; h.Op == op && !h.Blank() {
		return h
	}
	return nil
}

// viewSuffix is the suffix of a StartView: commit point to the newest op held, newest first.
func (r *Replica) viewSuffix() []wire.PrepareHeader {
	low := max(r.tail.low, 1)
	if r.held >= wire.MaxSuffix {
		low = max(low, r.held-wire.MaxSuffix+1)
	}
	suffix := make([]wire.PrepareHeader, 0, r.held+1-low)
	for op := r.held; op >= low; op-- {
		suffix = append(suffix, r.tail.at(op).header)
	}
	return suffix
}

// suffixSize returns size and checksum_body of a frame with this suffix.
func suffixSize(suffix []wire.PrepareHeader) (size uint32, checksum wire.U128) {
	size = uint32(wire.HeaderSize * (1 + len(suffix)))
	return size, wire.SuffixChecksum(wire.AppendSuffix(nil, suffix))
}

// follows reports whether a decoded suffix is the one its header speaks of.
func follows(suffix []wire.PrepareHeader, head uint64, size uint32) bool {
	if uint64(len(suffix)) > head || uint64(len(suffix)+1)*wire.HeaderSize != uint64(size) {
		return false
	}
	for i := range suffix {
		if suffix[i].Op != head-uint64(i) {
			return false
		}
	}
	return true
}
