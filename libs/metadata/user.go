package metadata

import (
	"cmp"
	"iter"

	"github.com/whippet-mq/whippet/libs/wire"
)

// User is an account.
type User struct {
	ID           uint32
	Name         string
	PasswordHash string // PHC string
	Active       bool
	CreatedAt    uint64            // µs; 1 for root
	Permissions  *wire.Permissions // nil: none

	tokens treeMap[string, *Token] // by name
}

// Status is the user's status on the wire.
func (u *User) Status() wire.UserStatus {
	if u.Active {
		return wire.UserActive
	}
	return wire.UserInactive
}

// Tokens yields the user's tokens in name order, expired ones included.
func (u *User) Tokens() iter.Seq2[string, *Token] { return u.tokens.All() }

// TokenCount is the number of the user's tokens, expired ones included.
func (u *User) TokenCount() int { return u.tokens.Len() }

// Token is a personal access token. Only the hash of its text exists on the servers.
type Token struct {
	UserID    uint32
	Name      string
	Hash      string // 64 lower-case hex characters: BLAKE3 of the raw text
	ExpiresAt uint64 // µs; 0 = never
}

// Expired reports whether the token is unusable at now (µs).
func (t *Token) Expired(now uint64) bool { return t.ExpiresAt != 0 && t.ExpiresAt <= now }

// expiry orders the tokens that expire.
type expiry struct {
	at   uint64
	user uint32
	name string
}

func (t *Token) expiry() expiry { return expiry{t.ExpiresAt, t.UserID, t.Name} }

func compareExpiries(a, b expiry) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.user, b.user), cmp.Compare(a.name, b.name))
}

func (v *View) addUser(u *User) {
	v.users = v.users.set(u.ID, u)
	v.userNames = v.userNames.set(u.Name, u.ID)
}

func (v *View) addToken(u *User, t *Token) {
	changed := *u
	changed.tokens = u.tokens.set(t.Name, t)
	v.users = v.users.set(u.ID, &changed)
	v.tokens = v.tokens.set(t.Hash, t)
	if t.ExpiresAt != 0 {
		v.expiries = v.expiries.set(t.expiry(), t)
	}
}

func (v *View) dropToken(u *User, t *Token) {
	changed := *u
	changed.tokens = u.tokens.delete(t.Name)
	v.users = v.users.set(u.ID, &changed)
	v.tokens = v.tokens.delete(t.Hash)
	v.expiries = v.expiries.delete(t.expiry())
}
