package wire

// UserStatus says whether a user may log in.
type UserStatus uint8

// User statuses.
const (
	UserActive   UserStatus = 1
	UserInactive UserStatus = 2
)

// UserTarget is the body of get and delete user.
type UserTarget struct{ User Identifier }

// DecodeUserTarget reads a UserTarget; bytes behind it are ignored.
func DecodeUserTarget(b []byte) (UserTarget, error) {
	r := reader{rest: b}
	t := UserTarget{User: r.identifier()}
	return t, r.err()
}

// Append writes t's wire form behind dst.
func (t UserTarget) Append(dst []byte) []byte { return t.User.Append(dst) }

// CreateUserRequest makes a user.
type CreateUserRequest struct {
	Username    []byte     // 1..255 bytes here; the server's bounds are tighter
	Password    []byte     // 0..255 bytes
	Status      UserStatus // as sent; a value without a name is stored as active
	Permissions []byte     // a valid permission blob, nil when absent
	Options     Options    // no key is defined for users
}

// DecodeCreateUser reads a CreateUserRequest, which must fill b.
func DecodeCreateUser(b []byte) (CreateUserRequest, error) {
	r := reader{rest: b}
	q := CreateUserRequest{
		Username: r.name8(), Password: r.str8(), Status: UserStatus(r.u8()),
		Permissions: r.optionalPermissions(), Options: r.options(),
	}
	return q, r.err()
}

// Append writes q's wire form behind dst.
func (q CreateUserRequest) Append(dst []byte) []byte {
	dst = appendStr8(appendStr8(dst, q.Username), q.Password)
	dst = appendOptionalPermissions(append(dst, byte(q.Status)), q.Permissions)
	return append(dst, q.Options...)
}

// UpdateUserRequest changes a user's name, status or both; neither is a valid request.
type UpdateUserRequest struct {
	User      Identifier
	Username  []byte // nil when absent
	HasStatus bool
	Status    UserStatus // a value without a name is ignored
	Options   Options    // no key is defined for users
}

// DecodeUpdateUser reads an UpdateUserRequest, which must fill b.
func DecodeUpdateUser(b []byte) (UpdateUserRequest, error) {
	r := reader{rest: b}
	q := UpdateUserRequest{User: r.identifier()}
	if r.u8() == 1 {
		q.Username = r.name8()
	}
	if r.u8() == 1 {
		q.HasStatus, q.Status = true, UserStatus(r.u8())
	}
	q.Options = r.options()
	return q, r.err()
}

// Append writes q's wire form behind dst.
func (q UpdateUserRequest) Append(dst []byte) []byte {
	dst = q.User.Append(dst)
	if q.Username != nil {
		dst = appendStr8(append(dst, 1), q.Username)
	} else {
		dst = append(dst, 0)
	}
	if q.HasStatus {
		dst = append(dst, 1, byte(q.Status))
	} else {
		dst = append(dst, 0)
	}
	return append(dst, q.Options...)
}

// UpdatePermissionsRequest replaces a user's permissions; nil clears them.
type UpdatePermissionsRequest struct {
	User        Identifier
	Permissions []byte // a valid permission blob, nil when absent
}

// DecodeUpdatePermissions reads an UpdatePermissionsRequest; bytes behind it are ignored.
func DecodeUpdatePermissions(b []byte) (UpdatePermissionsRequest, error) {
	r := reader{rest: b}
	q := UpdatePermissionsRequest{User: r.identifier(), Permissions: r.optionalPermissions()}
	return q, r.err()
}

// Append writes q's wire form behind dst.
func (q UpdatePermissionsRequest) Append(dst []byte) []byte {
	return appendOptionalPermissions(q.User.Append(dst), q.Permissions)
}

// ChangePasswordRequest replaces a user's password. Both passwords are 0..255 bytes.
type ChangePasswordRequest struct {
	User    Identifier
	Current []byte
	New     []byte
}

// DecodeChangePassword reads a ChangePasswordRequest; bytes behind it are ignored.
func DecodeChangePassword(b []byte) (ChangePasswordRequest, error) {
	r := reader{rest: b}
	q := ChangePasswordRequest{User: r.identifier(), Current: r.str8(), New: r.str8()}
	return q, r.err()
}

// Append writes q's wire form behind dst.
func (q ChangePasswordRequest) Append(dst []byte) []byte {
	return appendStr8(appendStr8(q.User.Append(dst), q.Current), q.New)
}

// CreateTokenRequest makes a personal access token of the caller.
type CreateTokenRequest struct {
	Name   []byte
	Expiry uint64 // microseconds from now; 0 and 2^64-1 mean never
}

// DecodeCreateToken reads a CreateTokenRequest; bytes behind it are ignored.
func DecodeCreateToken(b []byte) (CreateTokenRequest, error) {
	r := reader{rest: b}
	q := CreateTokenRequest{Name: r.name8(), Expiry: r.u64()}
	return q, r.err()
}

// Append writes q's wire form behind dst.
func (q CreateTokenRequest) Append(dst []byte) []byte {
	return appendU64(appendStr8(dst, q.Name), q.Expiry)
}

// DeleteTokenRequest removes one of the caller's personal access tokens.
type DeleteTokenRequest struct{ Name []byte }

// DecodeDeleteToken reads a DeleteTokenRequest; bytes behind it are ignored.
func DecodeDeleteToken(b []byte) (DeleteTokenRequest, error) {
	r := reader{rest: b}
	q := DeleteTokenRequest{Name: r.name8()}
	return q, r.err()
}

// Append writes q's wire form behind dst.
func (q DeleteTokenRequest) Append(dst []byte) []byte { return appendStr8(dst, q.Name) }
