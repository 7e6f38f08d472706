package metadata

import (
	"cmp"

	"github.com/whippet-mq/whippet/libs/wire"
)

func (v *View) createUser(h *wire.PrepareHeader, body []byte) ([]byte, wire.Code) {
	q, err := wire.DecodeLoggedCreateUser(body)
	if err != nil {
		return nil, wire.CodeInvalidCommand
	}
	permissions, err := optionalPermissions(q.Permissions, q.HasPermissions)
	if err != nil {
		return nil, wire.CodeInvalidCommand
	}
	if !v.Can(h.UserID, RightManageUsers, 0, 0) {
		return nil, wire.CodeUnauthorized
	}
	name := string(q.Name)
	if !validUsername(name) {
		return nil, wire.CodeInvalidUsername
	}
	if _, taken := v.userNames.Get(name); taken {
		return nil, wire.CodeUserAlreadyExists
	}
	if len(q.Options) > 0 {
		return nil, wire.CodeInvalidOptionValue
	}
	u := &User{
		ID: lowestFree(v.users), Name: name, PasswordHash: string(q.Hash), CreatedAt: h.Timestamp,
		Active: wire.UserStatus(q.Status) != wire.UserInactive, Permissions: permissions,
		tokens: newMap[string, *Token](cmp.Compare[string]),
	}
	v.addUser(u)
	record := u.Details()
	record.Status = wire.UserStatus(q.Status) // echoed as sent
	return record.Append(nil), 0
}

func optionalPermissions(blob []byte, present bool) (*wire.Permissions, error) {
	if !present {
		return nil, nil
	}
	p, err := wire.DecodePermissions(blob)
	if err != nil {
		return nil, err
	}
	return &p, nil
}

func validUsername(name string) bool {
	return len(name) >= wire.MinUsername && len(name) <= wire.MaxUsername
}

// targetUser tests the right to manage users, then resolves one.
func (v *View) targetUser(h *wire.PrepareHeader, id wire.Identifier) (*User, wire.Code) {
	if !v.Can(h.UserID, RightManageUsers, 0, 0) {
		return nil, wire.CodeUnauthorized
	}
	u := v.User(id)
	if u == nil {
		return nil, wire.CodeResourceNotFound
	}
	return u, 0
}

func (v *View) updateUser(h *wire.PrepareHeader, body []byte) wire.Code {
	q, err := wire.DecodeUpdateUser(body)
	if err != nil {
		return wire.CodeInvalidCommand
	}
	u, code := v.targetUser(h, q.User)
	if code != 0 {
		return code
	}
	changed := *u
	if q.Username != nil {
		changed.Name = string(q.Username)
		if !validUsername(changed.Name) {
			return wire.CodeInvalidUsername
		}
		if owner, taken := v.userNames.Get(changed.Name); taken && owner != u.ID {
			return wire.CodeUserAlreadyExists
		}
	}
	if len(q.Options) > 0 {
		return wire.CodeInvalidOptionValue
	}
	if q.HasStatus && (q.Status == wire.UserActive || q.Status == wire.UserInactive) {
		changed.Active = q.Status == wire.UserActive
	}
	v.userNames = v.userNames.delete(u.Name)
	v.addUser(&changed)
	return 0
}

func (v *View) deleteUser(h *wire.PrepareHeader, body []byte) wire.Code {
	q, err := wire.DecodeUserTarget(body)
	if err != nil {
		return wire.CodeInvalidCommand
	}
	u, code := v.targetUser(h, q.User)
	switch {
	case code != 0:
		return code
	case u.ID == RootID:
		return wire.CodeCannotDeleteUser
	}
	for _, t := range u.tokens.All() {
		v.tokens = v.tokens.delete(t.Hash)
		v.expiries = v.expiries.delete(t.expiry())
	}
	v.users = v.users.delete(u.ID)
	v.userNames = v.userNames.delete(u.Name)
	v.orphan(u.ID)
	return 0
}

// changePassword resolves first because one's own password needs no right.
func (v *View) changePassword(h *wire.PrepareHeader, body []byte) wire.Code {
	q, err := wire.DecodeLoggedChangePassword(body)
	if err != nil {
		return wire.CodeInvalidCommand
	}
	u := v.User(q.User)
	switch {
	case u == nil:
		return wire.CodeResourceNotFound
	case u.ID != h.UserID && !v.Can(h.UserID, RightManageUsers, 0, 0):
		return wire.CodeUnauthorized
	case len(q.Hash) == 0:
		return wire.CodeInvalidCredentials
	}
	changed := *u
	changed.PasswordHash = string(q.Hash)
	v.users = v.users.set(u.ID, &changed)
	return 0
}

func (v *View) updatePermissions(h *wire.PrepareHeader, body []byte) wire.Code {
	q, err := wire.DecodeUpdatePermissions(body)
	if err != nil {
		return wire.CodeInvalidCommand
	}
	u, code := v.targetUser(h, q.User)
	switch {
	case code != 0:
		return code
	case u.ID == RootID:
		return wire.CodeCannotChangePermissions
	}
	changed := *u
	if changed.Permissions, err = optionalPermissions(q.Permissions, q.Permissions != nil); err != nil {
		return wire.CodeInvalidCommand
	}
	v.users = v.users.set(u.ID, &changed)
	return 0
}

func (v *View) createToken(h *wire.PrepareHeader, body []byte) wire.Code {
	q, err := wire.DecodeLoggedCreateToken(body)
	if err != nil {
		return wire.CodeInvalidCommand
	}
	u := v.UserByID(q.UserID)
	switch {
	case u == nil:
		return wire.CodeResourceNotFound
	case u.ID != h.UserID:
		return wire.CodeUnauthorized
	}
	t := &Token{UserID: u.ID, Name: string(q.Name), Hash: string(q.Hash)}
	if _, taken := u.tokens.Get(t.Name); taken {
		return wire.CodePersonalAccessTokenAlreadyExists
	}
	if _, taken := v.tokens.Get(t.Hash); taken {
		return wire.CodePersonalAccessTokenAlreadyExists
	}
	if q.Expiry != 0 && q.Expiry != ^uint64(0) {
		if t.ExpiresAt = h.Timestamp + q.Expiry; t.ExpiresAt <= h.Timestamp {
			return wire.CodeInvalidPersonalAccessTokenExpiry
		}
	}
	v.addToken(u, t)
	return 0
}

// deleteToken tests the expiry again when the cleaner asks, so that a token made anew under the same name
// survives.
func (v *View) deleteToken(h *wire.PrepareHeader, body []byte) wire.Code {
	q, err := wire.DecodeLoggedDeleteToken(body)
	if err != nil {
		return wire.CodeInvalidCommand
	}
	u := v.UserByID(q.UserID)
	switch {
	case u == nil:
		return wire.CodeResourceNotFound
	case u.ID != h.UserID && !h.Client.IsZero(): // the servers' own ops have no client
		return wire.CodeUnauthorized
	}
	t, ok := u.tokens.Get(string(q.Name))
	if !ok {
		return wire.CodeResourceNotFound
	}
	if !q.OnlyIfExpired || t.Expired(v.Time) {
		v.dropToken(u, t)
	}
	return 0
}
