package simulator

import (
	"fmt"
	"strings"

	"github.com/whippet-mq/whippet/libs/vsr"
)

var inputNames = [...]string{"tick", "request", "frame", "written", "synced", "write failed", "adopted", "vote saved", "applied", "alive", "dead", "isolated", "reached", "peer view", "installed", "transfer failed", "hand over"}

// saySteps tells one step in one line: the event, where it led, and its effects.
func (m *member) saySteps(commit uint64) {
	in, out := &m.in, &m.out
	var text strings.Builder
	fmt.Fprintf(&text, "n%d g%d %s", m.n.id, m.group, inputNames[in.Kind])
	switch in.Kind {
	case vsr.InputFrame:
		fmt.Fprintf(&text, " %s from m%d view %d", in.Header.Command(), in.From, viewOf(in.Header[:]))
	case vsr.InputWritten, vsr.InputSynced, vsr.InputApplied, vsr.InputWriteFailed, vsr.InputPeerView:
		fmt.Fprintf(&text, " %d", in.Op)
	case vsr.InputAlive, vsr.InputDead:
		fmt.Fprintf(&text, " m%d", in.From)
	}
	fmt.Fprintf(&text, " -> view %d/%d head %d commit %d", m.core.View(), m.core.LogView(), m.core.Head().Op, m.core.Commit())
	if m.core.Primary() {
		text.WriteString(" primary")
	}
	if out.Truncate != 0 {
		fmt.Fprintf(&text, " truncate %d", out.Truncate)
	}
	if out.AdoptView != 0 {
		fmt.Fprintf(&text, " adopt view %d (%d headers)", out.AdoptView, len(out.Adopt))
	}
	for i := range out.Append {
		fmt.Fprintf(&text, " append %d:%04x", out.Append[i].Header.Op, out.Append[i].Header.Checksum.Lo>>48)
	}
	if out.Vote.Save {
		fmt.Fprintf(&text, " vote %d/%d whole %v", out.Vote.View, out.Vote.LogView, out.Vote.Whole)
	}
	for i := range out.Send {
		s := &out.Send[i]
		fmt.Fprintf(&text, " send %s to %s", s.Header.Command(), memberName(s.To))
		if s.Op != 0 {
			fmt.Fprintf(&text, " op %d", s.Op)
		}
		if len(s.Suffix) > 0 {
			fmt.Fprintf(&text, " (%d headers)", len(s.Suffix))
		}
	}
	for _, s := range out.Serve {
		fmt.Fprintf(&text, " serve %d..%d to m%d", s.Low, s.Top, s.To)
	}
	if out.Transfer.Wanted {
		fmt.Fprintf(&text, " transfer from m%d above %d", out.Transfer.From, out.Transfer.Above)
	}
	if n := len(out.Refused); n > 0 {
		fmt.Fprintf(&text, " refused %d (%v)", n, out.Refused[0].Why)
	}
	if out.Lost != 0 {
		fmt.Fprintf(&text, " LOST %d", out.Lost)
	}
	if out.Fault != vsr.FaultNone {
		fmt.Fprintf(&text, " fault %v", out.Fault)
	}
	m.w.trace.say("%s", text.String())
}

func viewOf(header []byte) uint32 {
	return uint32(header[52]) | uint32(header[53])<<8 | uint32(header[54])<<16 | uint32(header[55])<<24
}

func memberName(to uint8) string {
	if to == vsr.Everyone {
		return "all"
	}
	return fmt.Sprintf("m%d", to)
}
