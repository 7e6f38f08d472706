package metadata

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
)

// The transcripts are conversations recorded from the reference server. This player is the thinnest
// front-door there can be: it keeps passwords and bindings, and lets the package answer what the
// metadata alone can answer. Steps that need messages, connections or the system are passed over.

type step struct {
	N      int               `json:"n"`
	Do     string            `json:"do"`
	Conn   string            `json:"conn"`
	Note   string            `json:"note"`
	Send   string            `json:"send"`
	Subst  [][]any           `json:"subst"`
	Expect string            `json:"expect"`
	Frame  string            `json:"frame"`
	Mask   [][]any           `json:"mask"`
	Loose  [][]any           `json:"loose"`
	Want   [][]any           `json:"want"`
	Bind   [][]any           `json:"bind"`
	AnyOrd [][]int           `json:"any_order"`
	Better bool              `json:"better"`
	Env    map[string]string `json:"env"`
	Quirk  any               `json:"quirk"`
	Seal   bool              `json:"seal"`
}

var runs = regexp.MustCompile(`\(([0-9a-f]+)\*(\d+)\)`)

func unhex(t *testing.T, s string) []byte {
	s = runs.ReplaceAllStringFunc(s, func(m string) string {
		parts := runs.FindStringSubmatch(m)
		n, _ := strconv.Atoi(parts[2])
		return strings.Repeat(parts[1], n)
	})
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatalf("hex: %v", err)
	}
	return b
}

type binding struct {
	id    wire.U128
	epoch uint64
	user  uint32
}

type player struct {
	*log
	bound     map[string]*binding
	names     map[string][]byte
	passwords map[string]string // PHC -> password
	tokens    int
	sends     bool
	judged    int
}

func TestTranscripts(t *testing.T) {
	dir := os.Getenv("TRANSCRIPTS")
	files, _ := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".jsonl"), func(t *testing.T) { play(t, f) })
	}
}

func play(t *testing.T, file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p := &player{log: newLog(t), bound: map[string]*binding{}, names: map[string][]byte{}, passwords: map[string]string{rootHash: "iggy"}}
	for line := range bytes.Lines(data) {
		var s step
		if err := json.Unmarshal(line, &s); err != nil {
			t.Fatal(err)
		}
		if s.Do == "" {
			if s.Quirk != nil {
				t.Skip("quirk")
			}
			limits := Limits{}
			limits.Clients, _ = strconv.Atoi(s.Env["IGGY_METADATA_CLIENTS_TABLE_MAX"])
			limits.Tokens, _ = strconv.Atoi(s.Env["IGGY_PERSONAL_ACCESS_TOKEN_MAX_TOKENS_PER_USER"])
			p.v = New(RootUser{"iggy", rootHash}, limits)
			continue
		}
		p.step(t, &s)
	}
	snapshot(t, p.v)
	t.Logf("%d steps judged", p.judged)
}

func (p *player) step(t *testing.T, s *step) {
	switch s.Do {
	case "restart", "crash":
		b := snapshot(t, p.v)
		p.v, _ = DecodeSnapshot(b, p.v.limits)
		clear(p.bound)
	case "close":
		if b := p.bound[s.Conn]; b != nil {
			if c := p.v.Client(b.id); c != nil && c.Epoch == b.epoch {
				p.logout(b.id)
			}
			delete(p.bound, s.Conn)
		}
	case "sleep":
		p.now += 3_000_000
	case "call":
		frame := p.substitute(t, s)
		if len(frame) < wire.HeaderSize {
			return
		}
		var h wire.RequestHeader
		if h.Decode(frame) != nil || h.Validate() != nil {
			return
		}
		if got := p.answer(&h, frame[wire.HeaderSize:], s); got != nil {
			p.judge(t, s, got)
		}
	}
}

func (p *player) substitute(t *testing.T, s *step) []byte {
	frame := unhex(t, s.Send)
	for _, sub := range s.Subst {
		off, n, value := int(sub[0].(float64)), int(sub[1].(float64)), p.names[sub[2].(string)]
		if len(sub) > 3 && sub[3] == "str8" {
			frame = slices.Concat(frame[:off], []byte{byte(len(value))}, value, frame[off+1:])
			binary.LittleEndian.PutUint32(frame[48:], uint32(len(frame)))
			continue
		}
		if len(value) < n {
			continue
		}
		copy(frame[off:off+n], value)
		if len(sub) > 3 {
			d, _ := strconv.ParseInt(sub[3].(string), 10, 64)
			binary.LittleEndian.PutUint64(frame[off:], binary.LittleEndian.Uint64(frame[off:])+uint64(d))
		}
	}
	return frame
}

func reply(h *wire.RequestHeader, op wire.Operation, status wire.Code, body []byte) []byte {
	r := wire.ReplyHeader{Size: uint32(wire.HeaderSize + len(body)), Request: h.Request, Operation: op, Status: status, Client: h.Client}
	b := make([]byte, wire.HeaderSize)
	r.Put(b)
	return append(b, body...)
}

func evict(reason wire.EvictionReason) []byte {
	b := make([]byte, wire.HeaderSize)
	(&wire.EvictionHeader{Reason: reason, Client: client(1)}).Put(b)
	return b
}

func (p *player) answer(h *wire.RequestHeader, body []byte, s *step) []byte {
	if !h.RequestChecksum.IsZero() && h.RequestChecksum != wire.Widened(body) {
		return nil
	}
	b := p.bound[s.Conn]
	switch {
	case h.Operation == wire.OpRegister:
		return p.register(h, body, s)
	case b == nil:
		return nil
	case h.Operation == wire.OpLogout:
		p.logout(b.id)
		delete(p.bound, s.Conn)
		return reply(h, wire.OpLogout, 0, nil)
	case h.Operation == wire.OpNonReplicated:
		return p.read(h, body, b)
	case h.Operation.Partition():
		p.sends = true
		return nil
	case h.Operation.Internal():
		return nil
	}
	return p.write(h, body, b)
}

func (p *player) register(h *wire.RequestHeader, body []byte, s *step) []byte {
	_, rest, err := wire.DecodeLoginPrefix(body)
	if err != nil {
		return nil
	}
	q, err := wire.DecodeLogin(rest)
	if err != nil || p.bound[s.Conn] != nil {
		return nil
	}
	u := p.v.UserByName(q.Username)
	if u == nil || !q.WithinPolicy() || p.passwords[u.PasswordHash] != string(q.Password) || !u.Active {
		return evict(wire.EvictInvalidCredentials)
	}
	verdict := p.v.PreflightRegister(h.Client, u.ID)
	if verdict.Action == ActionEvict {
		return evict(verdict.Evict)
	}
	p.login(h.Client, u.ID)
	p.bound[s.Conn] = &binding{h.Client, p.v.Op, u.ID}
	return reply(h, wire.OpRegister, 0, wire.LoginReply{UserID: u.ID, Session: p.v.Op, ProtocolVersion: 11264, ServerVersion: "0.9.0-edge.5"}.Append(wire.AppendSuccess(nil)))
}

func (p *player) write(h *wire.RequestHeader, body []byte, b *binding) []byte {
	if code := p.v.Check(h.Operation, body, b.user); code != 0 {
		return reply(h, h.Operation, code, nil)
	}
	header := *h
	header.Client, header.Session, header.UserID = b.id, b.epoch, b.user
	verdict := p.v.PreflightRequest(&header)
	switch verdict.Action {
	case ActionReplay:
		return verdict.Reply.Append(nil)
	case ActionResult:
		return reply(h, h.Operation, 0, wire.AppendRejection(nil, verdict.Code))
	case ActionRefuse:
		return reply(h, h.Operation, verdict.Code, nil)
	case ActionEvict:
		return evict(verdict.Evict)
	}
	raw := ""
	switch h.Operation {
	case wire.OpCreateUser:
		q, _ := wire.DecodeCreateUser(body)
		body = LogCreateUser(nil, body, p.hash(string(q.Password)))
	case wire.OpChangePassword:
		q, _ := wire.DecodeChangePassword(body)
		hash := ""
		if u := p.v.User(q.User); u != nil && p.passwords[u.PasswordHash] == string(q.Current) {
			hash = p.hash(string(q.New))
		}
		body = LogChangePassword(nil, body, hash)
	case wire.OpCreateToken:
		p.tokens++
		raw = fmt.Sprintf("%068d", p.tokens)
		body = LogCreateToken(nil, body, b.user, fmt.Sprintf("%064x", p.tokens))
	}
	op, logged, code := p.v.Admit(nil, &Request{Operation: h.Operation, Body: body, UserID: b.user, Client: b.id})
	if code != 0 {
		return reply(h, h.Operation, code, nil)
	}
	r := p.commit(wire.PrepareHeader{Operation: op, Client: b.id, UserID: b.user, Request: h.Request, RequestChecksum: h.RequestChecksum}, logged)
	if raw != "" && r.Code == 0 {
		return reply(h, op, 0, wire.AppendRawToken(r.Body, raw))
	}
	c := p.v.Client(b.id)
	return c.Replies[len(c.Replies)-1].Append(nil)
}

func (p *player) hash(password string) string {
	phc := fmt.Sprintf("phc-%d", len(p.passwords))
	p.passwords[phc] = password
	return phc
}

func (p *player) read(h *wire.RequestHeader, body []byte, b *binding) []byte {
	v := p.v
	empty := reply(h, wire.OpNonReplicated, 0, nil)
	deny := func(code wire.Code) []byte { return reply(h, wire.OpNonReplicated, code, nil) }
	give := func(out []byte) []byte { return reply(h, wire.OpNonReplicated, 0, out) }
	if p.sends && h.Code < 600 {
		return nil
	}
	switch wire.Cmd(h.Code) {
	case wire.CmdGetStream:
		q, err := wire.DecodeStreamTarget(body)
		if err != nil {
			return deny(3)
		}
		st := v.Stream(q.Stream)
		if st == nil {
			return empty
		}
		if !v.Can(b.user, RightReadStream, st.ID, 0) {
			return deny(41)
		}
		out := st.Record().Append(nil)
		for _, t := range st.Topics() {
			out = t.Record(0).Append(out)
		}
		return give(out)
	case wire.CmdGetStreams:
		if !v.Can(b.user, RightListStreams, 0, 0) {
			return deny(41)
		}
		var out []byte
		for _, st := range v.Streams() {
			out = st.Record().Append(out)
		}
		return give(out)
	case wire.CmdGetTopic:
		q, err := wire.DecodeTopicTarget(body)
		if err != nil {
			return deny(3)
		}
		t, code := v.Topic(q.Stream, q.Topic)
		if code != 0 {
			return empty
		}
		if !v.Can(b.user, RightReadTopic, t.Stream, t.ID) {
			return deny(41)
		}
		out := t.Record(0).Append(nil)
		for _, pt := range t.AllPartitions() {
			out = wire.PartitionRecord{ID: pt.ID, CreatedAt: pt.CreatedAt, SegmentsCount: 1}.Append(out)
		}
		return give(out)
	case wire.CmdGetTopics:
		q, err := wire.DecodeStreamTarget(body)
		if err != nil {
			return deny(3)
		}
		st := v.Stream(q.Stream)
		if st == nil {
			return give(wire.AppendCount(nil, 0))
		}
		if !v.Can(b.user, RightListTopics, st.ID, 0) {
			return deny(41)
		}
		out := wire.AppendCount(nil, uint32(st.TopicCount()))
		for _, t := range st.Topics() {
			out = t.Record(0).Append(out)
		}
		return give(out)
	case wire.CmdGetUser:
		q, err := wire.DecodeUserTarget(body)
		if err != nil {
			return deny(3)
		}
		u := v.User(q.User)
		if u == nil {
			return empty
		}
		if u.ID != b.user && !v.Can(b.user, RightReadUsers, 0, 0) {
			return deny(41)
		}
		return give(u.Details().Append(nil))
	case wire.CmdGetUsers:
		if !v.Can(b.user, RightReadUsers, 0, 0) {
			return deny(41)
		}
		var out []byte
		for _, u := range v.Users() {
			out = u.Record().Append(out)
		}
		return give(out)
	case wire.CmdGetGroup, wire.CmdSyncGroup:
		return p.readGroup(h, body, b)
	}
	return nil
}

func (p *player) readGroup(h *wire.RequestHeader, body []byte, b *binding) []byte {
	give := func(code wire.Code, out []byte) []byte { return reply(h, wire.OpNonReplicated, code, out) }
	sync := wire.Cmd(h.Code) == wire.CmdSyncGroup
	q, err := wire.DecodeGroupTarget(body)
	if err != nil {
		if sync {
			return give(0, nil)
		}
		return give(3, nil)
	}
	if sync {
		g, code := p.v.Group(q.Stream, q.Topic, q.Group)
		if code != 0 || g.Member(h.Client) == nil {
			return give(0, nil)
		}
		pollable := slices.Collect(g.Member(h.Client).PollablePartitions())
		return give(0, wire.GroupAssignment{Generation: g.Generation, Partitions: pollable}.Append(nil))
	}
	t, code := p.v.Topic(q.Stream, q.Topic)
	if code != 0 {
		return give(code, nil)
	}
	if !p.v.Can(b.user, RightReadTopic, t.Stream, t.ID) {
		return give(41, nil)
	}
	g := t.Group(q.Group)
	if g == nil {
		return give(0, nil)
	}
	return give(0, g.AppendDetails(nil))
}

func (p *player) judge(t *testing.T, s *step, got []byte) {
	for _, b := range s.Bind {
		off, n := int(b[0].(float64)), 0
		if f, ok := b[1].(float64); ok {
			n = int(f)
		}
		if off+n <= len(got) {
			p.names[b[2].(string)] = slices.Clone(got[off : off+n])
		}
	}
	if s.Expect == "silence" {
		return
	}
	want := unhex(t, s.Frame)
	for _, w := range s.Want {
		off, n := int(w[0].(float64)), int(w[1].(float64))
		if bound := p.names[w[2].(string)]; len(bound) >= n && off+n <= len(want) {
			copy(want[off:off+n], bound)
		}
	}
	p.judged++
	if len(s.AnyOrd) > 0 {
		return
	}
	w, g := masked(want, s, want), masked(got, s, want)
	if !bytes.Equal(w, g) {
		t.Errorf("step %d, %s\n want %x\n got  %x", s.N, s.Note, w[min(len(w), 200):], g[min(len(g), 200):])
	}
}

// masked zeroes what is not judged and shrinks strings of free length to nothing.
func masked(b []byte, s *step, want []byte) []byte {
	out := slices.Clone(b)
	if len(out) > 216 && out[60] == byte(wire.CommandReply) {
		keep := slices.Clone(out[200:220])
		size := slices.Clone(out[48:52])
		clear(out[:48])
		clear(out[52:60])
		clear(out[61:200])
		copy(out[48:], size)
		copy(out[200:], keep)
	} else if len(out) == 256 {
		clear(out[:48])
		clear(out[52:60])
		clear(out[61:144])
	}
	for _, m := range slices.Concat(s.Mask, s.Loose) {
		off := int(m[0].(float64))
		n := 0
		if f, ok := m[1].(float64); ok {
			n = int(f)
		}
		if len(m) > 3 && (m[3] == "str8" || m[3] == "str32" || m[3] == "rest") {
			clear(out[48:52])
			return out[:min(off, len(out))]
		}
		if off < len(out) {
			clear(out[off:min(off+n, len(out))])
		}
	}
	return out
}
