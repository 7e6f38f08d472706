package metadata

import (
	"fmt"
	"slices"

	"github.com/whippet-mq/whippet/libs/wire"
)

// binding is the session of a connection.
type binding struct {
	id    wire.U128
	epoch uint64
	user  uint32
}

// player answers frames like a front-door in front of one metadata replica. A nil answer means that the
// step is not the metadata's to answer.
type player struct {
	*log
	bound     map[string]*binding
	names     map[string][]byte
	passwords map[string]string // PHC -> password
	tokens    int
	sends     bool
	judged    int
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
	switch h.Code {
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
	sync := h.Code == wire.CmdSyncGroup
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
