package wire

// UserRecord is one user in a reply.
// Layout: id:u32 created_at:u64 status:u8 username:name8 options:opt32 (client-wire §10.2).
type UserRecord struct {
	ID        uint32 // 0 is root
	CreatedAt uint64 // microseconds since the epoch
	Status    UserStatus
	Username  string
	Options   Options // always empty
}

// Append writes u's wire form behind dst.
func (u UserRecord) Append(dst []byte) []byte {
	dst = append(appendU64(appendU32(dst, u.ID), u.CreatedAt), byte(u.Status))
	return u.Options.AppendPrefixed(appendStr8(dst, u.Username))
}

func (r *reader) userRecord() UserRecord {
	return UserRecord{
		ID: r.u32(), CreatedAt: r.u64(), Status: UserStatus(r.u8()), Username: string(r.name8()),
		Options: r.copiedOptions(),
	}
}

// DecodeUsers reads records to the end of b.
func DecodeUsers(b []byte) ([]UserRecord, error) { return decodeAll(b, (*reader).userRecord) }

// UserDetails is a user with its permissions, the payload of get and create user.
type UserDetails struct {
	UserRecord
	Permissions *Permissions // nil when none are stored
}

// Append writes d's wire form behind dst.
func (d UserDetails) Append(dst []byte) []byte {
	var blob []byte
	if d.Permissions != nil {
		blob = d.Permissions.Append(nil)
	}
	return AppendUserDetails(dst, d.UserRecord, blob)
}

// AppendUserDetails writes a user and its permission blob, nil for none, behind dst. Absent
// permissions are four zero bytes, present ones 1, len:u32 and the blob.
func AppendUserDetails(dst []byte, u UserRecord, permissions []byte) []byte {
	dst = u.Append(dst)
	if permissions == nil {
		return append(dst, 0, 0, 0, 0)
	}
	return appendStr32(append(dst, 1), permissions)
}

// DecodeUserDetails reads a UserDetails, which must fill b.
func DecodeUserDetails(b []byte) (UserDetails, error) {
	r := reader{rest: b}
	d := UserDetails{UserRecord: r.userRecord()}
	if r.u8() == 0 {
		r.take(3)
		return d, r.end()
	}
	permissions, err := DecodePermissions(r.blk32())
	if err != nil {
		r.fail()
	}
	d.Permissions = &permissions
	return d, r.end()
}

// TokenRecord is one personal access token in a list. Layout: name:name8 expiry_at:u64.
type TokenRecord struct {
	Name     string
	ExpiryAt uint64 // microseconds since the epoch, 0 is never
}

// Append writes t's wire form behind dst.
func (t TokenRecord) Append(dst []byte) []byte { return appendU64(appendStr8(dst, t.Name), t.ExpiryAt) }

func (r *reader) tokenRecord() TokenRecord {
	return TokenRecord{Name: string(r.name8()), ExpiryAt: r.u64()}
}

// DecodeTokens reads records to the end of b.
func DecodeTokens(b []byte) ([]TokenRecord, error) { return decodeAll(b, (*reader).tokenRecord) }

// AppendRawToken writes the payload of create token behind dst: the token's text, 1..255 bytes,
// which the server never shows again.
func AppendRawToken(dst []byte, token string) []byte { return appendStr8(dst, token) }

// DecodeRawToken reads the payload of create token, which must fill b.
func DecodeRawToken(b []byte) (string, error) {
	r := reader{rest: b}
	token := string(r.name8())
	return token, r.end()
}
