package wire

// Logged forms: what stands in the metadata log where it differs from the client's request
// (replica-wire.md §5.3). Operations without a type here are logged with the client's body. Decoders
// give CodeInvalidCommand, tolerate bytes behind the last documented field unless said otherwise,
// and return slices that alias the body.

// LoggedCreateUser is the body of OpCreateUser: the request with the password replaced by its hash.
// Layout: name · hash:str8 · status:u8 · has_permissions:u8 [len:u32 permissions] · options.
type LoggedCreateUser struct {
	Name           []byte
	Hash           []byte // PHC text, at most 255 bytes
	Status         uint8
	HasPermissions bool
	Permissions    []byte // encoded permissions, when HasPermissions
	Options        []byte // encoded options to the end of the body
}

// DecodeLoggedCreateUser decodes b.
func DecodeLoggedCreateUser(b []byte) (l LoggedCreateUser, err error) {
	r := reader{rest: b}
	l.Name, l.Hash, l.Status = r.name8(), r.str8(), r.u8()
	if l.HasPermissions = r.u8() == 1; l.HasPermissions {
		l.Permissions = r.blk32()
	}
	l.Options = r.rest
	return l, r.err()
}

// Append writes l behind dst.
func (l LoggedCreateUser) Append(dst []byte) []byte {
	dst = append(appendStr8(appendStr8(dst, l.Name), l.Hash), l.Status)
	dst = appendFlag(dst, l.HasPermissions)
	if l.HasPermissions {
		dst = appendStr32(dst, l.Permissions)
	}
	return append(dst, l.Options...)
}

// LoggedChangePassword is the body of OpChangePassword. An empty Hash records that the current
// password did not verify: it commits the refusal and changes nothing.
// Layout: ident · current:str8, always empty · hash:str8.
type LoggedChangePassword struct {
	User Identifier
	Hash []byte // PHC text or empty
}

// DecodeLoggedChangePassword decodes b.
func DecodeLoggedChangePassword(b []byte) (l LoggedChangePassword, err error) {
	r := reader{rest: b}
	l.User = r.identifier()
	r.str8()
	l.Hash = r.str8()
	return l, r.err()
}

// Append writes l behind dst.
func (l LoggedChangePassword) Append(dst []byte) []byte {
	return appendStr8(append(l.User.Append(dst), 0), l.Hash)
}

// TokenHashSize is the length of a logged token hash: BLAKE3 of the raw token in lower-case hex.
const TokenHashSize = 64

// LoggedCreateToken is the body of OpCreateToken; the raw token never enters the log.
// Layout: user:u32 · name · expiry:u64 · hash:64.
type LoggedCreateToken struct {
	UserID uint32
	Name   []byte
	Expiry uint64 // as requested, µs from the prepare's timestamp; 0 and 2^64-1 mean never
	Hash   []byte // TokenHashSize bytes
}

// DecodeLoggedCreateToken decodes b.
func DecodeLoggedCreateToken(b []byte) (l LoggedCreateToken, err error) {
	r := reader{rest: b}
	l.UserID, l.Name, l.Expiry, l.Hash = r.u32(), r.name8(), r.u64(), r.text(r.take(TokenHashSize))
	return l, r.err()
}

// Append writes l behind dst.
func (l LoggedCreateToken) Append(dst []byte) []byte {
	return append(appendU64(appendStr8(appendU32(dst, l.UserID), l.Name), l.Expiry), l.Hash...)
}

// LoggedDeleteToken is the body of OpDeleteToken. The expiry cleaner proposes it with client 0,
// request 0 and OnlyIfExpired. Layout: user:u32 · name · only_if_expired:u8.
type LoggedDeleteToken struct {
	UserID        uint32
	Name          []byte
	OnlyIfExpired bool
}

// DecodeLoggedDeleteToken decodes b.
func DecodeLoggedDeleteToken(b []byte) (l LoggedDeleteToken, err error) {
	r := reader{rest: b}
	l.UserID, l.Name, l.OnlyIfExpired = r.u32(), r.name8(), r.flag()
	return l, r.err()
}

// Append writes l behind dst.
func (l LoggedDeleteToken) Append(dst []byte) []byte {
	return appendFlag(appendStr8(appendU32(dst, l.UserID), l.Name), l.OnlyIfExpired)
}
