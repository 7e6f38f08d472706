package vsr_test

import (
	"fmt"
	"strings"

	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// ballot plays scenarios of the merge alone. A report names its suffix, newest first, one word each:
//
//	12b   op 12, history b, held      (12b) header known, not held
//	12?   nothing known               12!   denied
//
// Histories are written from op 1 on: b at op 12 follows b at op 11, and the first op of a history
// follows history a.
type ballot struct {
	reports []vsr.Report
	chain   map[string]wire.PrepareHeader
}

func (b *ballot) run(w words, line string) string {
	if w.command == "report" {
		b.reports = append(b.reports, b.report(line))
		return ""
	}
	n := int(w.number("n", 3))
	rules := vsr.MergeRules{Members: n, Quorums: vsr.QuorumsOf(n), Lossy: w.has("lossy")}
	text := outcomeText(vsr.Merge(b.reports, rules))
	for range b.reports { // the order of the reports does not matter
		b.reports = append(b.reports[1:], b.reports[0])
		if again := outcomeText(vsr.Merge(b.reports, rules)); again != text {
			text += "IN ANOTHER ORDER " + again
		}
	}
	if !w.has("more") {
		b.reports = nil
	}
	return text
}

func (b *ballot) report(line string) vsr.Report {
	head, list, _ := strings.Cut(line, ":")
	w := split(head)
	r := vsr.Report{
		Member: w.member(), LogView: uint32(w.number("log", 0)), Commit: w.number("commit", 0), Suspect: w.has("suspect"),
		Head: w.number("head", 0),
	}
	fields := strings.Fields(list)
	r.Suffix = make([]wire.PrepareHeader, len(fields))
	for i := len(fields) - 1; i >= 0; i-- { // a parent before what follows it
		r.Suffix[i] = b.entry(fields[i], &r, i)
	}
	if len(fields) > 0 {
		r.Head = r.Suffix[0].Op
	}
	return r
}

func (b *ballot) entry(word string, r *vsr.Report, i int) wire.PrepareHeader {
	var op uint64
	var history string
	bare := strings.Trim(word, "()")
	_, err := fmt.Sscanf(bare, "%d%s", &op, &history)
	must(err)
	switch {
	case history == "?":
		return wire.BlankPrepare(op)
	case history == "!":
		r.Nack = r.Nack.WithBit(i)
		return wire.BlankPrepare(op)
	case bare == word:
		r.Present = r.Present.WithBit(i)
	}
	return b.header(op, history)
}

// header makes the entry of a history at op. The part behind a slash is the commit point it carries.
func (b *ballot) header(op uint64, history string) wire.PrepareHeader {
	branch, rest, _ := strings.Cut(history, "/")
	var commit uint64
	if rest != "" {
		_, err := fmt.Sscan(rest, &commit)
		must(err)
	}
	if b.chain == nil {
		b.chain = map[string]wire.PrepareHeader{}
	}
	key := fmt.Sprintf("%d%s", op, history)
	if h, ok := b.chain[key]; ok {
		return h
	}
	h := wire.PrepareHeader{
		Command: wire.CommandPrepare, Op: op, Timestamp: op, Request: uint64(branch[0]), Size: wire.HeaderSize,
		Operation: wire.OpSendMessages, Commit: commit,
	}
	if op > 1 {
		h.Parent = b.parent(op-1, branch)
	}
	h.Checksum = h.Identity()
	b.chain[key] = h
	return h
}

// parent is the entry below in the same history if it was named, else in history a.
func (b *ballot) parent(op uint64, branch string) wire.U128 {
	for key, h := range b.chain {
		if h.Op == op && strings.HasPrefix(key, fmt.Sprintf("%d%s", op, branch)) {
			return h.Checksum
		}
	}
	if branch != "a" {
		return b.parent(op, "a")
	}
	h := b.header(op, "a")
	return h.Checksum
}

func outcomeText(o vsr.Outcome) string {
	switch o.Decision {
	case vsr.Waiting:
		return fmt.Sprintf("waiting at %d\n", o.Op)
	case vsr.Deadlocked:
		return fmt.Sprintf("deadlocked at %d\n", o.Op)
	}
	text := fmt.Sprintf("head=%d commit=%d [", o.Head, o.Commit)
	for i := range o.Headers {
		if i > 0 {
			text += " "
		}
		text += fmt.Sprintf("%d%c", o.Headers[i].Op, rune(o.Headers[i].Request))
	}
	text += "]"
	if o.Lost > 0 {
		text += fmt.Sprintf(" lost=%d", o.Lost)
	}
	return text + "\n"
}
