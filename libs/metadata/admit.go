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
	// InFlight are the partitions with polled but uncommitted data of the joined group (148); see
	// Group.Surplus for the ones that matter.
	InFlight []uint32
	// TrimTo is the end offset of the count-th oldest sealed segment (138), 0 when none is sealed.
	TrimTo uint64
	// MaxTokens bounds the tokens of a user (146); 0 means the view's Limits.Tokens.
	MaxTokens int
}

// Admit tests like Check and rewrites the request into its logged form, which is appended to dst:
// 132 becomes 64, 136 becomes 65, 138 becomes 68, and 147, 148 and 149 get user or client ids. A
// front-door that resolved DeleteSegments itself sends 68 in its logged form. Bytes behind the last
// field of a body are not logged. A non-zero code is the status to refuse with;
// nothing was appended then.
func (v *View) Admit(dst []byte, r *Request) (op wire.Operation, body []byte, code wire.Code) {
	switch r.Operation {
	case wire.OpCreateToken:
		return v.admitToken(dst, r)
	case wire.OpTruncatePartition:
		q, err := wire.DecodeLoggedTruncatePartition(r.Body)
		if err != nil {
			return 0, dst, wire.CodeInvalidCommand
		}
		return r.Operation, q.Append(dst), 0
	}
	if code := v.Check(r.Operation, r.Body, r.UserID); code != 0 {
		return 0, dst, code
	}
	op, body = r.Operation, r.Body
	switch op {
	case wire.OpCreateTopic:
		return wire.OpCreateTopicWithAssignments, v.logCreateTopic(dst, r), 0
	case wire.OpCreatePartitions:
		return wire.OpCreatePartitionsWithAssignments, v.logCreatePartitions(dst, r), 0
	case wire.OpDeleteSegments:
		return wire.OpTruncatePartition, logTruncate(dst, r), 0
	case wire.OpDeleteToken:
		q, _ := wire.DecodeDeleteToken(body)
		return op, wire.LoggedDeleteToken{UserID: r.UserID, Name: q.Name}.Append(dst), 0
	case wire.OpJoinGroup:
		q, _ := wire.DecodeGroupTarget(body)
		logged := wire.LoggedJoinGroup{
			Stream: q.Stream, Topic: q.Topic, Group: q.Group, Client: r.Client, InFlight: r.InFlight,
		}
		return op, logged.Append(dst), 0
	case wire.OpLeaveGroup:
		q, _ := wire.DecodeGroupTarget(body)
		return op, wire.LoggedLeaveGroup{Stream: q.Stream, Topic: q.Topic, Group: q.Group, Client: r.Client}.Append(dst), 0
	}
	return op, appendCanonical(dst, op, body), 0
}

// admitToken admits the logged form of CreateToken. The owner is the session's user, whatever the
// body says.
func (v *View) admitToken(dst []byte, r *Request) (wire.Operation, []byte, wire.Code) {
	q, err := wire.DecodeLoggedCreateToken(r.Body)
	if err != nil {
		return 0, dst, wire.CodeInvalidCommand
	}
	if code := v.tokenQuota(r.UserID, r.MaxTokens); code != 0 {
		return 0, dst, code
	}
	q.UserID = r.UserID
	return wire.OpCreateToken, q.Append(dst), 0
}

func (v *View) logCreateTopic(dst []byte, r *Request) []byte {
	q, _ := wire.DecodeCreateTopic(r.Body)
	options, _ := wire.ParseTopicOptions(q.Options)
	return wire.LoggedCreateTopic{
		Stream: q.Stream, PartitionsCount: q.PartitionsCount, Name: q.Name,
		Explicit: options.AppendExplicit(nil), Derived: options.AppendDerived(nil, wire.GenerationSnapshot),
		Assignments: v.assign(int(q.PartitionsCount), r.Place),
	}.Append(dst)
}

func (v *View) logCreatePartitions(dst []byte, r *Request) []byte {
	q, _ := wire.DecodePartitions(r.Body)
	return wire.LoggedCreatePartitions{
		Stream: q.Stream, Topic: q.Topic, Count: q.Count, Assignments: v.assign(int(q.Count), r.Place),
	}.Append(dst)
}

// logTruncate keeps the client's identifiers, so that apply answers a target that does not exist.
func logTruncate(dst []byte, r *Request) []byte {
	q, _ := wire.DecodeDeleteSegments(r.Body)
	return wire.LoggedTruncatePartition{
		Stream: q.Stream, Topic: q.Topic, Partition: q.Partition, UpToOffset: r.TrimTo,
	}.Append(dst)
}

// LogCreateUser appends the logged form of a CreateUser body that passed Check; hash is the PHC string
// of its password.
func LogCreateUser(dst, body []byte, hash string) []byte {
	q, _ := wire.DecodeCreateUser(body)
	return wire.LoggedCreateUser{
		Name: q.Username, Hash: []byte(hash), Status: uint8(q.Status),
		HasPermissions: q.Permissions != nil, Permissions: q.Permissions, Options: q.Options,
	}.Append(dst)
}

// LogChangePassword appends the logged form of a ChangePassword body that passed Check. An empty
// hash says that the current password did not verify; the refusal is ordered all the same, so that
// the request number is used up.
func LogChangePassword(dst, body []byte, hash string) []byte {
	q, _ := wire.DecodeChangePassword(body)
	return wire.LoggedChangePassword{User: q.User, Hash: []byte(hash)}.Append(dst)
}

// LogCreateToken appends the logged form of a CreateToken body that passed Check; hash is BLAKE3 of
// the raw token in 64 lower-case hex characters.
func LogCreateToken(dst, body []byte, user uint32, hash string) []byte {
	q, _ := wire.DecodeCreateToken(body)
	return wire.LoggedCreateToken{UserID: user, Name: q.Name, Expiry: q.Expiry, Hash: []byte(hash)}.Append(dst)
}

// LogExpireToken appends the body with which the primary removes an expired token: operation 147,
// client 0, request 0, user 0.
func LogExpireToken(dst []byte, t *Token) []byte {
	return wire.LoggedDeleteToken{UserID: t.UserID, Name: []byte(t.Name), OnlyIfExpired: true}.Append(dst)
}

// LogCompleteRevocation appends the body of operation 67 for a pending revocation of member m, which
// is proposed with client wire.RevocationClient, request 2^64-1 and user 0.
func LogCompleteRevocation(dst []byte, g *Group, m *Member, partition uint32) []byte {
	return wire.LoggedCompleteRevocation{
		Stream: wire.NumericID(g.Stream), Topic: wire.NumericID(g.Topic), Group: uint64(g.Group),
		Source: m.Client, Partition: partition,
	}.Append(dst)
}

// assign numbers n new partitions and lets place decide who holds them. The numbers continue from the
// highest the log has given out; they are kept for the documented form and name nothing.
func (v *View) assign(n int, place func(n int) [][]byte) []wire.Assignment {
	list := make([]wire.Assignment, n)
	var members [][]byte
	if place != nil && n > 0 {
		members = place(n)
	}
	for i := range list {
		list[i] = wire.Assignment{Partition: uint32(i), ConsensusGroup: v.assignments + 1 + uint64(i)}
		if i < len(members) {
			list[i].Members = members[i]
		}
	}
	return list
}
