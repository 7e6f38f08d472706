package frontdoor

import (
	"crypto/rand"
	"sync"
	"time"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/wire"
)

// Local is how another protocol of this process acts for users with the same commands,
// authorization, routing and repeats as connections of the binary protocol. It has no connections,
// so it keeps sessions of its own: any idle one serves a read or a partition write, and each user has
// one, registered with the metadata group, that orders its metadata operations one at a time.
// It does not appear among the clients. All methods may be used concurrently, from Start to Stop.
type Local struct {
	server   *Server
	patience time.Duration // repeats of a refused partition write

	mu      sync.Mutex
	idle    []*Session
	writers map[uint32]*writer
}

// Limits of Local.
const (
	localPatience = 10 * time.Second // of a partition write: 504 after it
	writerIdle    = 10 * time.Minute // a user's session unused for this long is logged out
)

// Local returns the way in for other protocols of this process.
func (s *Server) Local() *Local { return s.local }

func newLocal(s *Server) *Local {
	return &Local{server: s, patience: localPatience, writers: make(map[uint32]*writer)}
}

// LocalReply is the answer to a Local call. Its Body is valid until Release, which must be called
// once.
type LocalReply struct {
	Status wire.Code // 0 is success, else Body is empty
	Body   []byte    // the answer's payload, result section taken off
	View   uint32    // of the group that committed, 0 for reads

	release func()
}

// Release gives back what the answer holds.
func (r *LocalReply) Release() {
	if r.release != nil {
		r.release()
		r.release = nil
	}
}

// AdvertiseHTTP makes port the HTTP port of this node in the roster. Call it before Start.
func (s *Server) AdvertiseHTTP(port int) { s.core.cfg.Node.HTTP = uint16(port) }

// View is the front-door's newest metadata.
func (l *Local) View() *metadata.View { return l.server.core.deps.Follower.View() }

// Pool is the budget that request and reply bytes are taken from.
func (l *Local) Pool() *buffer.Pool { return l.server.core.deps.Pool }

// Read answers a command that is not ordered, polls included, for user.
func (l *Local) Read(user uint32, code wire.Cmd, body []byte) LocalReply {
	s := l.session(user, l.server.core.cfg.RetryFor)
	h := wire.RequestHeader{Operation: wire.OpNonReplicated, Code: code, Client: s.id, Session: 1, Request: 1}
	return l.reply(s, s.frame(&h, body), nil, func() { l.park(s) })
}

// WritePartition serves OpSendMessages, OpStoreOffset or OpDeleteOffset for user. frame holds 256
// free bytes and the request's body; it is released here.
func (l *Local) WritePartition(user uint32, op wire.Operation, frame *buffer.Frame) LocalReply {
	s := l.session(user, l.patience)
	b := frame.Bytes()
	h := wire.RequestHeader{Operation: op, Client: s.id, Session: 1, Request: 1, Size: uint32(len(b))}
	h.Put(b)
	return l.reply(s, b, frame, func() { l.park(s) })
}

// reply runs one request and takes its answer apart.
func (l *Local) reply(s *Session, b []byte, frame *buffer.Frame, done func()) LocalReply {
	out := l.server.answer(s, b, frame)
	r := LocalReply{Status: s.status, release: func() { s.release(); done() }}
	if s.reason != 0 {
		r.Status = evictedCode(s.reason)
	}
	if r.Status != 0 {
		return r
	}
	var h wire.ReplyHeader
	if h.Decode(out) != nil {
		r.Status = wire.CodeInvalidCommand
		return r
	}
	r.Body = out[wire.HeaderSize:]
	if s.header.Operation == wire.OpNonReplicated {
		return r
	}
	r.View = h.View
	if s.header.Operation == wire.OpSendMessages {
		return r // has no result section
	}
	payload, err := wire.DecodeResult(r.Body)
	if err != nil {
		r.Status, r.Body = asCode(err), nil
		return r
	}
	r.Body = payload
	return r
}

// evictedCode is what an eviction means to somebody without a connection.
func evictedCode(reason wire.EvictionReason) wire.Code {
	if reason == wire.EvictInvalidRequestOperation || reason == wire.EvictInvalidRequestBody {
		return wire.CodeInvalidCommand
	}
	return wire.CodeTransientNotAccepted
}

// session takes an idle session, or makes one, and lets it act for user.
func (l *Local) session(user uint32, patience time.Duration) *Session {
	l.mu.Lock()
	var s *Session
	if n := len(l.idle); n > 0 {
		s, l.idle = l.idle[n-1], l.idle[:n-1]
	}
	l.mu.Unlock()
	if s == nil {
		s = l.newSession()
	}
	if b := s.binding.Load(); b == nil || b.user != user {
		s.binding.Store(&binding{client: s.id, session: 1, user: user})
	}
	s.retryFor = patience
	return s
}

func (l *Local) newSession() *Session {
	s := newSession(l.server.core, nobody{}, "")
	s.id = l.server.core.clients.number()
	return s
}

// keptSessions is how many idle sessions are kept for the next requests.
const keptSessions = 256

func (l *Local) park(s *Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.idle) < keptSessions {
		l.idle = append(l.idle, s)
	}
}

// nobody is where a session without a connection pushes to.
type nobody struct{}

func (nobody) write([]byte) bool { return true }

// frame lays a request out in the session's own buffer.
func (s *Session) frame(h *wire.RequestHeader, body []byte) []byte {
	h.Size = uint32(wire.HeaderSize + len(body))
	s.asked = append(append(s.asked[:0], make([]byte, wire.HeaderSize)...), body...)
	h.Put(s.asked)
	return s.asked
}

// Password verifies a login. It returns the user, or CodeInvalidCredentials whatever is wrong, or
// CodeTransientNotAccepted when too many logins wait or nothing certain is known. It costs the same for
// unknown users.
func (l *Local) Password(name, password []byte) (user uint32, code wire.Code) {
	core := l.server.core
	q := wire.LoginRequest{Username: name, Password: password}
	if !q.WithinPolicy() {
		core.metrics.loginsDenied.Inc()
		return 0, wire.CodeInvalidCredentials
	}
	var found *metadata.User
	job := passwordJob{}
	settled := l.server.settle(func(v *metadata.View) bool {
		found = v.UserByName(name)
		who, phc := wire.NoUser, core.passwords.dummy
		if found != nil {
			who, phc = found.ID, found.PasswordHash
		}
		if job.phc != phc { // else a newer view says the same
			job = passwordJob{user: who, phc: phc, password: append([]byte(nil), password...)}
			core.passwords.compute(&job)
		}
		return job.busy || job.ok && found != nil && found.Active
	})
	switch {
	case !settled, job.busy:
		core.metrics.loginsBusy.Inc()
		return 0, wire.CodeTransientNotAccepted
	case !job.ok || found == nil || !found.Active:
		core.metrics.loginsDenied.Inc()
		return 0, wire.CodeInvalidCredentials
	}
	core.metrics.logins.Inc()
	return found.ID, 0
}

// Token finds the owner of a personal access token by its raw text. The refusals are
// CodeInvalidPersonalAccessToken, for an inactive owner CodeUserInactive, and CodeTransientNotAccepted when
// nothing certain is known.
func (l *Local) Token(raw string, now time.Time) (owner *metadata.User, code wire.Code) {
	hash := hashToken([]byte(raw))
	if !l.server.settle(func(v *metadata.View) bool {
		owner, code = tokenOwner(v, hash, now)
		return code == 0
	}) {
		return nil, wire.CodeTransientNotAccepted
	}
	return owner, code
}

func tokenOwner(v *metadata.View, hash string, now time.Time) (*metadata.User, wire.Code) {
	token := v.TokenByHash(hash)
	if token == nil || token.Expired(uint64(now.UnixMicro())) {
		return nil, wire.CodeInvalidPersonalAccessToken
	}
	switch owner := v.UserByID(token.UserID); {
	case owner == nil:
		return nil, wire.CodeInvalidPersonalAccessToken
	case !owner.Active:
		return nil, wire.CodeUserInactive
	default:
		return owner, 0
	}
}

// User returns a user by id, nil when there is none; CodeTransientNotAccepted when nothing certain is
// known.
func (l *Local) User(id uint32) (user *metadata.User, code wire.Code) {
	if !l.server.settle(func(v *metadata.View) bool {
		user = v.UserByID(id)
		return user != nil
	}) {
		return nil, wire.CodeTransientNotAccepted
	}
	return user, 0
}

func randomU128() wire.U128 {
	var b [16]byte
	rand.Read(b[:])
	return wire.DecodeU128(b[:])
}
