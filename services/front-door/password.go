package frontdoor

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/crypto/argon2"
	"lukechampine.com/blake3"
)

// Parameters of new password hashes (client-semantics.md §8.2).
const (
	argonMemory  = 19456 // KiB
	argonTime    = 2
	argonThreads = 1
	argonSalt    = 16 // bytes
	argonKey     = 32 // bytes
)

// HashPassword returns the argon2id PHC string of password with a random salt. It costs about 50 ms
// and 19 MiB.
func HashPassword(password []byte) string {
	salt := make([]byte, argonSalt)
	rand.Read(salt)
	key := argon2.IDKey(password, salt, argonTime, argonMemory, argonThreads, argonKey)
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonThreads,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(key))
}

var errPHC = errors.New("frontdoor: not an argon2id hash")

type phc struct {
	memory, time uint32
	threads      uint8
	salt, key    []byte
}

// parsePHC reads an argon2id PHC string and bounds what its verification may cost.
func parsePHC(text string) (p phc, err error) {
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" {
		return p, errPHC
	}
	var version int
	if _, err := fmt.Sscanf(parts[2], "v=%d", &version); err != nil || version != argon2.Version {
		return p, errPHC
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &p.memory, &p.time, &p.threads); err != nil {
		return p, errPHC
	}
	if p.salt, err = base64.RawStdEncoding.DecodeString(parts[4]); err != nil {
		return p, errPHC
	}
	if p.key, err = base64.RawStdEncoding.DecodeString(parts[5]); err != nil {
		return p, errPHC
	}
	if p.memory > 1<<20 || p.time == 0 || p.time > 64 || p.threads == 0 || len(p.key) < 16 || len(p.key) > 64 {
		return p, errPHC
	}
	return p, nil
}

// VerifyPassword reports whether password matches the PHC string, at argon2id's full cost.
func VerifyPassword(password []byte, text string) bool {
	p, err := parsePHC(text)
	if err != nil {
		return false
	}
	key := argon2.IDKey(password, p.salt, p.time, p.memory, p.threads, uint32(len(p.key)))
	return subtle.ConstantTimeCompare(key, p.key) == 1
}

// Passwords bounds what hashing may cost the process: a fixed number of workers and a bounded
// queue. It remembers, keyed with a random key of this process, the password that last verified for
// a user, so a service account with many connections costs one argon2id. Wrong passwords are never
// remembered.
type Passwords struct {
	jobs  chan *passwordJob
	key   [32]byte
	dummy string

	mu      sync.RWMutex
	good    map[uint32]goodPassword
	running map[[32]byte]*verification
}

type goodPassword struct {
	phc    string
	digest [32]byte
}

// passwordJob is one computation; done receives once.
type passwordJob struct {
	user     uint32
	password []byte
	phc      string // verify against it; "" hashes the password instead
	ok       bool
	busy     bool // there was no room in the queue
	hash     string
	done     chan struct{}
}

func defaultPasswordWorkers() int { return max(1, runtime.GOMAXPROCS(0)/2) }

// newPasswords starts the workers; Close ends them.
func newPasswords(workers, queue int) *Passwords {
	p := &Passwords{jobs: make(chan *passwordJob, queue), good: make(map[uint32]goodPassword), running: make(map[[32]byte]*verification)}
	rand.Read(p.key[:])
	// The hash that logins of unknown users are verified against, so that they cost the same. Its
	// key is random: nothing matches it.
	salt := make([]byte, argonSalt+argonKey)
	rand.Read(salt)
	p.dummy = fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonThreads,
		base64.RawStdEncoding.EncodeToString(salt[:argonSalt]), base64.RawStdEncoding.EncodeToString(salt[argonSalt:]))
	for range workers {
		go p.work()
	}
	return p
}

// Close ends the workers once the queue is empty. No submit may follow.
func (p *Passwords) Close() { close(p.jobs) }

// compute runs one computation: at once when the password is a known good one, else in the pool. Those that ask
// the same at the same time share one: a service whose connections all come back costs one argon2id.
func (p *Passwords) compute(j *passwordJob) {
	j.ok, j.busy, j.hash = false, false, ""
	switch {
	case j.phc == "":
		p.wait(j)
	case p.known(j.user, j.password, j.phc):
		j.ok = true
		clear(j.password)
	default:
		p.share(j)
	}
}

// verification is one that several jobs wait for.
type verification struct {
	done     chan struct{}
	ok, busy bool
}

func (p *Passwords) share(j *passwordJob) {
	key := p.digest(j.user, j.password, j.phc)
	p.mu.Lock()
	v := p.running[key]
	if v != nil {
		p.mu.Unlock()
		clear(j.password)
		<-v.done
		j.ok, j.busy = v.ok, v.busy
		return
	}
	v = &verification{done: make(chan struct{})}
	p.running[key] = v
	p.mu.Unlock()
	p.wait(j)
	p.mu.Lock()
	delete(p.running, key)
	p.mu.Unlock()
	v.ok, v.busy = j.ok, j.busy
	close(v.done)
}

// wait has the pool run a job, unless it has no room.
func (p *Passwords) wait(j *passwordJob) {
	if j.done == nil {
		j.done = make(chan struct{}, 1)
	}
	if !p.submit(j) {
		j.busy = true
		return
	}
	<-j.done
}

// submit queues a job and reports false when the queue is full.
func (p *Passwords) submit(j *passwordJob) bool {
	select {
	case p.jobs <- j:
		return true
	default:
		return false
	}
}

func (p *Passwords) work() {
	for j := range p.jobs {
		if j.phc == "" {
			j.hash = HashPassword(j.password)
		} else if j.ok = p.known(j.user, j.password, j.phc); !j.ok {
			if j.ok = VerifyPassword(j.password, j.phc); j.ok {
				p.remember(j.user, j.password, j.phc)
			}
		}
		clear(j.password)
		j.done <- struct{}{}
	}
}

// known reports whether this password verified before for this user and hash.
func (p *Passwords) known(user uint32, password []byte, phc string) bool {
	p.mu.RLock()
	good, ok := p.good[user]
	p.mu.RUnlock()
	if !ok || good.phc != phc {
		return false
	}
	digest := p.digest(user, password, phc)
	return subtle.ConstantTimeCompare(digest[:], good.digest[:]) == 1
}

func (p *Passwords) remember(user uint32, password []byte, phc string) {
	digest := p.digest(user, password, phc)
	p.mu.Lock()
	p.good[user] = goodPassword{phc: phc, digest: digest}
	p.mu.Unlock()
}

func (p *Passwords) digest(user uint32, password []byte, phc string) (sum [32]byte) {
	h := blake3.New(32, p.key[:])
	var head [8]byte
	binary.LittleEndian.PutUint32(head[:], user)
	binary.LittleEndian.PutUint32(head[4:], uint32(len(phc)))
	h.Write(head[:])
	h.Write([]byte(phc))
	h.Write(password)
	h.Sum(sum[:0])
	return sum
}
