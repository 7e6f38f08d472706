package conformance

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"sort"
	"strings"
)

// Offsets inside the 256-byte headers a client looks at.
const (
	headerSize     = 256
	offSize        = 48
	offCommand     = 60
	offReqChecksum = 144
	offReplyReq    = 200
	offReplyOp     = 208
	offReplyStatus = 216
	offWindow      = 144
	offEvictRsv    = 152
	offReason      = 255

	commandReply    = 8
	commandEviction = 13

	statusUnknownOutcome = 57
	statusNotAdmitted    = 58
)

func status(frame []byte) uint32 { return binary.LittleEndian.Uint32(frame[offReplyStatus:]) }

// rejection returns the code of a rejecting result section, 0 when the body is anything else.
func rejection(frame []byte) uint32 {
	body := frame[headerSize:]
	if len(body) == 12 && binary.LittleEndian.Uint32(body) == 1 && binary.LittleEndian.Uint32(body[4:]) == 0 {
		return binary.LittleEndian.Uint32(body[8:])
	}
	return 0
}

// refusal returns the code a reply refuses with, through either channel, or 0.
func refusal(frame []byte) uint32 {
	if frame[offCommand] != commandReply {
		return 0
	}
	if s := status(frame); s != 0 {
		return s
	}
	return rejection(frame)
}

// retryable reports whether clients answer this frame by sending their request again.
func retryable(frame []byte) bool {
	c := refusal(frame)
	return c == statusUnknownOutcome || c == statusNotAdmitted
}

// typedRefusal reports whether frame says no in a way every client understands.
func typedRefusal(frame []byte) bool {
	return frame[offCommand] == commandEviction || refusal(frame) != 0
}

// judge compares an answer with the recorded one and returns what it binds. The error says where
// they part.
func judge(step *Step, got []byte, bound map[string][]byte) (map[string][]byte, error) {
	want := step.Frame
	if len(want) < headerSize {
		return nil, fmt.Errorf("recorded frame of %d bytes", len(want))
	}
	if got[offCommand] != want[offCommand] {
		return nil, fmt.Errorf("%s, want %s", describe(got), describe(want))
	}
	if err := judgeHeader(want, got); err != nil {
		return nil, err
	}
	m := newMatcher(step, want, got)
	if !m.match(headerSize, len(want), headerSize, len(got)) {
		return nil, fmt.Errorf("%s: body differs at %d: %s", describe(got), m.furthest, bodyDiff(want, got, m.furthest))
	}
	for _, f := range step.Want {
		have, ok := bound[f.Name]
		if !ok {
			return nil, fmt.Errorf("nothing bound to %q", f.Name)
		}
		if at := m.place(f.Off); !bytes.Equal(slice(got, at, f.Len), have) {
			return nil, fmt.Errorf("%q at %d is %x, want %x", f.Name, at, slice(got, at, f.Len), have)
		}
	}
	if err := runCheck(step.Check, got); err != nil {
		return nil, err
	}
	return bindings(step, m, got)
}

func judgeHeader(want, got []byte) error {
	if want[offCommand] == commandEviction {
		if want[offReason] != got[offReason] {
			return fmt.Errorf("%s, want %s", describe(got), describe(want))
		}
		if !bytes.Equal(want[offWindow:offEvictRsv], got[offWindow:offEvictRsv]) {
			return fmt.Errorf("%s: version window %x, want %x", describe(got), got[offWindow:offEvictRsv], want[offWindow:offEvictRsv])
		}
		if reserved := append(append([]byte{}, got[62:128]...), got[offEvictRsv:offReason]...); !allZero(reserved) {
			return fmt.Errorf("%s: reserved bytes are not zero", describe(got))
		}
		return nil
	}
	if !bytes.Equal(want[offReplyReq:offReplyOp], got[offReplyReq:offReplyOp]) ||
		want[offReplyOp] != got[offReplyOp] || status(want) != status(got) {
		return fmt.Errorf("%s, want %s", describe(got), describe(want))
	}
	return nil
}

// matcher walks an expected frame and an actual one side by side. Masks of variable length shift
// what follows, so it keeps where each expected part was found.
type matcher struct {
	want, got []byte
	masks     []Field // ascending, not overlapping
	records   []Field // ascending; their order in got is free
	spans     []span
	furthest  int // offset in got up to which something fitted
}

// span says that n bytes at want stand at got.
type span struct{ want, n, got int }

func newMatcher(step *Step, want, got []byte) *matcher {
	m := &matcher{want: want, got: got, records: append([]Field(nil), step.AnyOrder...)}
	m.masks = append(append(m.masks, step.Mask...), step.Loose...)
	for _, f := range step.Want {
		m.masks = append(m.masks, Field{Off: f.Off, Len: f.Len})
	}
	byOffset := func(f []Field) { sort.SliceStable(f, func(i, j int) bool { return f[i].Off < f[j].Off }) }
	byOffset(m.masks)
	byOffset(m.records)
	return m
}

// match reports whether want[w:wEnd] fits got[g:gEnd] exactly.
func (m *matcher) match(w, wEnd, g, gEnd int) bool {
	for w < wEnd {
		if run := m.recordsAt(w); len(run) > 1 {
			last := run[len(run)-1]
			tail := func(g int) bool { return m.match(last.end(), wEnd, g, gEnd) }
			return m.permute(run, make([]bool, len(run)), g, gEnd, tail)
		}
		n, next, ok := m.piece(w, wEnd, g, gEnd)
		if !ok {
			return false
		}
		m.spans = append(m.spans, span{w, n, g})
		w, g = w+n, next
		m.furthest = max(m.furthest, g)
	}
	return g == gEnd || w == len(m.want) && m.openEnded()
}

// openEnded reports whether the expected frame, recorded without its last part, may go on.
func (m *matcher) openEnded() bool {
	for _, f := range m.masks {
		if f.Form == "rest" && f.Off == len(m.want) {
			return true
		}
	}
	return false
}

// recordsAt returns the records without order that begin at w.
func (m *matcher) recordsAt(w int) []Field {
	var run []Field
	for _, r := range m.records {
		if r.Off == w {
			run = append(run, r)
			w = r.end()
		}
	}
	return run
}

// permute places the records not used yet from g on, in whatever order fits, then calls tail.
func (m *matcher) permute(run []Field, used []bool, g, gEnd int, tail func(int) bool) bool {
	mark, all := len(m.spans), true
	for i, r := range run {
		if used[i] {
			continue
		}
		all = false
		end, ok := m.record(r, g, gEnd)
		if ok {
			used[i] = true
			if m.permute(run, used, end, gEnd, tail) {
				return true
			}
			used[i] = false
		}
		m.spans = m.spans[:mark]
	}
	return all && tail(g)
}

// record fits one record at g and returns where it ends.
func (m *matcher) record(r Field, g, gEnd int) (int, bool) {
	for w := r.Off; w < r.end(); {
		n, next, ok := m.piece(w, r.end(), g, gEnd)
		if !ok {
			return 0, false
		}
		m.spans = append(m.spans, span{w, n, g})
		w, g = w+n, next
	}
	return g, true
}

// piece fits the literal or masked bytes that begin at w: n bytes of want, got up to next.
func (m *matcher) piece(w, wEnd, g, gEnd int) (n, next int, ok bool) {
	stop := wEnd
	for _, f := range m.masks {
		if f.Len > 0 && f.Off <= w && w < f.end() || f.Off == w {
			return m.masked(f, w, wEnd, g, gEnd)
		}
		if f.Off > w {
			stop = min(stop, f.Off)
		}
	}
	for _, r := range m.records {
		if r.Off > w {
			stop = min(stop, r.Off)
		}
	}
	n = stop - w
	for i := range n {
		if g+i >= gEnd || m.want[w+i] != m.got[g+i] {
			m.furthest = max(m.furthest, g+i)
			return 0, 0, false
		}
	}
	return n, g + n, true
}

func (m *matcher) masked(f Field, w, wEnd, g, gEnd int) (n, next int, ok bool) {
	n = min(f.end(), wEnd) - w
	switch f.Form {
	case "rest":
		return wEnd - w, gEnd, true
	case "str8":
		if g < gEnd {
			next = g + 1 + int(m.got[g])
		}
	case "str32":
		if g+4 <= gEnd {
			next = g + 4 + int(binary.LittleEndian.Uint32(m.got[g:]))
		}
	default:
		next = g + n
		if f.Form == "nonzero" && next <= gEnd && allZero(m.got[g:next]) {
			return 0, 0, false
		}
	}
	if next < g || next == 0 || next > gEnd {
		m.furthest = max(m.furthest, g)
		return 0, 0, false
	}
	return n, next, true
}

// place returns where the byte at offset w of the expected frame stands in the actual one.
func (m *matcher) place(w int) int {
	for _, s := range m.spans {
		if s.want <= w && w < s.want+s.n {
			return s.got + w - s.want
		}
	}
	return w
}

func bindings(step *Step, m *matcher, got []byte) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, f := range step.Bind {
		at := m.place(f.Off)
		b := slice(got, at, f.Len)
		if f.Form == "str8" {
			if head := slice(got, at, 1); head != nil {
				b = slice(got, at+1, int(head[0]))
			}
		}
		if b == nil {
			return nil, fmt.Errorf("%q at %d lies beyond the answer", f.Name, at)
		}
		out[f.Name] = append([]byte{}, b...)
	}
	return out, nil
}

func runCheck(check string, got []byte) error {
	name, entries, _ := strings.Cut(check, " ")
	switch name {
	case "":
		return nil
	case "batches":
		return checkBatches(got[headerSize:])
	case "zip":
		return checkArchive(got[headerSize:], entries)
	}
	return fmt.Errorf("unknown check %q", check)
}

func checkArchive(body []byte, entries string) error {
	r, err := zip.NewReader(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	var have, want []string
	for _, f := range r.File {
		have = append(have, f.Name)
		rc, err := f.Open()
		if err != nil {
			return fmt.Errorf("archive entry %s: %w", f.Name, err)
		}
		if _, err := io.Copy(io.Discard, rc); err != nil {
			return fmt.Errorf("archive entry %s: %w", f.Name, err)
		}
		rc.Close()
	}
	want = strings.FieldsFunc(entries, func(r rune) bool { return r == ',' })
	sort.Strings(have)
	sort.Strings(want)
	if strings.Join(have, ",") != strings.Join(want, ",") {
		return fmt.Errorf("archive holds %v, want %v", have, want)
	}
	return nil
}

// slice returns n bytes of b from off, nil when b is too short.
func slice(b []byte, off, n int) []byte {
	if off < 0 || n < 0 || off+n > len(b) {
		return nil
	}
	return b[off : off+n]
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// describe names a frame in a few words.
func describe(f []byte) string {
	switch f[offCommand] {
	case commandEviction:
		return fmt.Sprintf("eviction reason %d", f[offReason])
	case commandReply:
		text := fmt.Sprintf("reply op %d request %d status %d body %d", f[offReplyOp],
			binary.LittleEndian.Uint64(f[offReplyReq:]), status(f), len(f)-headerSize)
		if c := rejection(f); c != 0 {
			text += fmt.Sprintf(" result %d", c)
		}
		return text
	}
	return fmt.Sprintf("frame of command %d", f[offCommand])
}

// bodyDiff shows both bodies around the first difference.
func bodyDiff(want, got []byte, at int) string {
	from := max(headerSize, at-8)
	cut := func(b []byte) string {
		if from >= len(b) {
			return fmt.Sprintf("(ends at %d)", len(b))
		}
		return fmt.Sprintf("%x (of %d)", b[from:min(len(b), from+40)], len(b))
	}
	return fmt.Sprintf("from %d got %s, want %s", from, cut(got), cut(want))
}
