package metadata

import (
	"bytes"
	"slices"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
)

const rootHash = "$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA"

// log drives a view like the primary does: it admits requests and applies what comes out. It keeps
// every prepare, so that a test can replay them.
type log struct {
	t        testing.TB
	v        *View
	now      uint64
	prepares []prepare
	place    func(n int) [][]byte
}

type prepare struct {
	header wire.PrepareHeader
	body   []byte
}

func newLog(t testing.TB) *log {
	return &log{t: t, v: New(RootUser{"iggy", rootHash}, Limits{}), now: 1_785_500_000_000_000}
}

func client(n uint64) wire.U128 { return wire.U128{Lo: n, Hi: 7} }

// commit applies one prepare.
func (l *log) commit(h wire.PrepareHeader, body []byte) Reply {
	l.now++
	h.Command, h.Group = wire.CommandPrepare, wire.MetadataGroup
	h.Op, h.Timestamp, h.Cluster = l.v.Op+1, l.now, testCluster
	h.Size = uint32(wire.HeaderSize + len(body))
	l.prepares = append(l.prepares, prepare{h, slices.Clone(body)})
	var reply Reply
	l.v, reply = l.v.Apply(&h, body)
	return reply
}

// login registers a client id for user.
func (l *log) login(id wire.U128, user uint32) Reply {
	return l.commit(wire.PrepareHeader{Operation: wire.OpRegister, Client: id, UserID: user}, nil)
}

func (l *log) logout(id wire.U128) Reply {
	return l.commit(wire.PrepareHeader{Operation: wire.OpLogout, Client: id, Request: ^uint64(0)}, nil)
}

type body interface{ Append(dst []byte) []byte }

// session is a client with a request counter.
type session struct {
	*log
	id      wire.U128
	user    uint32
	request uint64
}

func (l *log) session(n uint64, user uint32) *session {
	if r := l.login(client(n), user); r.Code != 0 {
		l.t.Fatalf("login: %v", r.Code)
	}
	return &session{log: l, id: client(n), user: user}
}

// status is what a request came to: a status before the log or a result behind it.
type status struct {
	Status, Result wire.Code
	Payload        []byte
}

func result(code wire.Code) status     { return status{Result: code} }
func statusCode(code wire.Code) status { return status{Status: code} }
func (s status) is(want status) bool   { return s.Status == want.Status && s.Result == want.Result }
func (s status) code() wire.Code       { return max(s.Status, s.Result) }

// do sends a request through admission and, if it passes, through the log.
func (s *session) do(op wire.Operation, b body) status { return s.raw(op, b.Append(nil)) }

func (s *session) raw(op wire.Operation, b []byte) status {
	return s.admit(&Request{Operation: op, Body: b})
}

func (s *session) admit(r *Request) status {
	s.t.Helper()
	r.UserID, r.Client, r.Place = s.user, s.id, s.place
	op, logged, code := s.v.Admit(nil, r)
	if code != 0 {
		return statusCode(code)
	}
	s.request++
	return s.ordered(op, logged)
}

// ordered commits a logged body under the next request number.
func (s *session) ordered(op wire.Operation, logged []byte) status {
	s.t.Helper()
	reply := s.commit(wire.PrepareHeader{Operation: op, Client: s.id, UserID: s.user, Request: s.request}, logged)
	payload, err := wire.DecodeResult(reply.Body)
	if got := codeOf(err); got != reply.Code {
		s.t.Fatalf("%v: body says %v, code %v", op, got, reply.Code)
	}
	return status{Result: reply.Code, Payload: payload}
}

func (s *session) want(want status, op wire.Operation, b body) []byte {
	s.t.Helper()
	got := s.do(op, b)
	if !got.is(want) {
		s.t.Fatalf("%v: got status %d result %d, want status %d result %d", op, got.Status, got.Result, want.Status, want.Result)
	}
	return got.Payload
}

func (s *session) must(op wire.Operation, b body) []byte {
	s.t.Helper()
	return s.want(status{}, op, b)
}

func name(s string) wire.Identifier   { return wire.NamedID(s) }
func number(n uint32) wire.Identifier { return wire.NumericID(n) }

func createStream(s string) body { return wire.CreateStreamRequest{Name: []byte(s)} }
func createTopic(stream, s string, n uint32) body {
	return wire.CreateTopicRequest{Stream: name(stream), PartitionsCount: n, Name: []byte(s)}
}

// snapshot encodes the view, decodes it again and checks that nothing was lost.
func snapshot(t testing.TB, v *View) []byte {
	t.Helper()
	b := v.EncodeSnapshot(nil)
	back, err := DecodeSnapshot(b, v.limits)
	if err != nil {
		t.Fatalf("decode: %v", err)
	}
	if again := back.EncodeSnapshot(nil); !bytes.Equal(b, again) {
		t.Fatalf("the decoded view encodes differently")
	}
	return b
}
