package metadata

import "github.com/whippet-mq/whippet/libs/wire"

// Request is a metadata request at the primary, with everything admission needs that is not in
// the view.
type Request struct {
	Operation wire.Operation
	// Body is the client's, except that CreateUser (141), ChangePassword (144) and CreateToken (146)
	// arrive in the logged form the front-door made with LogCreateUser, LogChangePassword and
	// LogCreateToken: raw secrets never leave it.
	Body   []byte
	UserID uint32    // owner of the session
	Client wire.U128 // client id of the session
	// Place decides the members of n new partitions (64, 65), as node ids, the leader of view 0
	// first. Nil: no lists are logged and the members are the roster (all-role nodes).
	Place func(n int) [][]byte
	// InFlight are the partitions with polled but uncommitted data of the joined group (148).
	InFlight []uint32
	// TrimTo is the end offset of the count-th oldest sealed segment (138), 0 when none is sealed.
	TrimTo uint64
	// MaxTokens bounds the tokens of a user (146); 0 means DefaultMaxTokens.
	MaxTokens int
}

// DefaultMaxTokens is personal_access_token.max_tokens_per_user when not configured.
const DefaultMaxTokens = 100

// Check tests everything about a request that is refused with a status before it is ordered: a body
// that does not decode (3), options (4041, 4042), partition counts (2015), the topic size (1019), the
// token quota (52). It needs no placement, so the front-door can run it before it forwards anything.
func (v *View) Check(op wire.Operation, body []byte, user uint32) wire.Code { panic("soon") }

// Admit tests like Check and rewrites the request into its logged form, which is appended to dst:
// 132 becomes 64, 136 becomes 65, 138 becomes 68, and 147, 148 and 149 get user or client ids.
// A non-zero code is the status to refuse with; nothing was appended then.
func (v *View) Admit(dst []byte, r *Request) (op wire.Operation, body []byte, code wire.Code) {
	panic("soon")
}
