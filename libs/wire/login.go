package wire

// LoginPrefix opens both login bodies. The version is judged before the rest is read.
// Layout: protocol_version:u32 sdk_name:name8 sdk_version:name8 (client-wire §7.2).
type LoginPrefix struct {
	ProtocolVersion uint32
	SDKName         []byte
	SDKVersion      []byte
}

// DecodeLoginPrefix reads the prefix and returns what stands behind it. A prefix that does not
// decode is answered with eviction reason 15 and a zero window.
func DecodeLoginPrefix(b []byte) (p LoginPrefix, rest []byte, err error) {
	r := reader{rest: b}
	p = LoginPrefix{ProtocolVersion: r.u32(), SDKName: r.name8(), SDKVersion: r.name8()}
	return p, r.rest, r.err()
}

// Append writes p's wire form behind dst.
func (p LoginPrefix) Append(dst []byte) []byte {
	dst = appendU32(dst, p.ProtocolVersion)
	return appendStr8(appendStr8(dst, p.SDKName), p.SDKVersion)
}

// LoginRequest is what follows the prefix when a user logs in with a password.
// Layout: username:name8 password:str8 context:blk32.
type LoginRequest struct {
	Username []byte
	Password []byte
	Context  []byte // UTF-8, unused
}

// DecodeLogin reads the password shape; bytes behind it are ignored.
//
// The command code is not on the wire, so a server tries this shape first. When it does not decode,
// or decodes and its credentials fail, the same bytes are tried as DecodeTokenLogin. When both fail
// the eviction reason is 9 if the password shape had decoded, else 10 or 11 by the token, else 15.
func DecodeLogin(b []byte) (LoginRequest, error) {
	r := reader{rest: b}
	q := LoginRequest{Username: r.name8(), Password: r.str8(), Context: r.str32()}
	return q, r.err()
}

// Append writes q's wire form behind dst, a buffer that holds the prefix.
func (q LoginRequest) Append(dst []byte) []byte {
	return appendStr32(appendStr8(appendStr8(dst, q.Username), q.Password), q.Context)
}

// WithinPolicy reports whether name and password have lengths a login may have at all; outside them
// the answer is the one for wrong credentials.
func (q LoginRequest) WithinPolicy() bool {
	return len(q.Username) >= MinUsername && len(q.Username) <= MaxUsername &&
		len(q.Password) >= MinPassword && len(q.Password) <= MaxPassword
}

// TokenLoginRequest is what follows the prefix when a user logs in with a personal access token.
// Layout: token:str8 context:blk32.
type TokenLoginRequest struct {
	Token   []byte
	Context []byte // UTF-8, unused
}

// DecodeTokenLogin reads the token shape; bytes behind it are ignored.
func DecodeTokenLogin(b []byte) (TokenLoginRequest, error) {
	r := reader{rest: b}
	q := TokenLoginRequest{Token: r.str8(), Context: r.str32()}
	return q, r.err()
}

// Append writes q's wire form behind dst, a buffer that holds the prefix.
func (q TokenLoginRequest) Append(dst []byte) []byte {
	return appendStr32(appendStr8(dst, q.Token), q.Context)
}

// LoginReply is the payload that answers a login, behind a result section of success.
// Layout: user_id:u32 session:u64 server_protocol_version:u32 server_version:name8.
type LoginReply struct {
	UserID          uint32 // 0 is root
	Session         uint64 // above 0: the register's place in the metadata log
	ProtocolVersion uint32
	ServerVersion   string // of the server build, 1..255 bytes
}

// Append writes the reply's payload behind dst, which holds the result section.
func (p LoginReply) Append(dst []byte) []byte {
	dst = appendU64(appendU32(dst, p.UserID), p.Session)
	return appendStr8(appendU32(dst, p.ProtocolVersion), p.ServerVersion)
}

// DecodeLoginReply reads a whole login reply body, result section included: the error may be the
// server's Code. A session of 0 is CodeInvalidSession.
func DecodeLoginReply(body []byte) (LoginReply, error) {
	payload, err := DecodeResult(body)
	if err != nil {
		return LoginReply{}, err
	}
	r := reader{rest: payload}
	p := LoginReply{
		UserID: r.u32(), Session: r.u64(), ProtocolVersion: r.u32(), ServerVersion: string(r.name8()),
	}
	if !r.bad && p.Session == 0 {
		return p, CodeInvalidSession
	}
	return p, r.err()
}
