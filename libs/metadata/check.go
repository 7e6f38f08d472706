package metadata

import "github.com/whippet-mq/whippet/libs/wire"

// Check tests everything about a client's request that is refused with a status before it is
// ordered: a body that does not decode (3), options (4041, 4042), partition counts (2015), the
// topic size (1019), the token quota (52). It needs no placement, so the front-door runs it before it
// forwards anything. It accepts the logged forms of 141 and 144 too, whose layouts are the same.
func (v *View) Check(op wire.Operation, body []byte, user uint32) wire.Code {
	switch op {
	case wire.OpCreateStream:
		q, err := wire.DecodeCreateStream(body)
		return noOptions(q.Options, err)
	case wire.OpUpdateStream:
		q, err := wire.DecodeUpdateStream(body)
		return noOptions(q.Options, err)
	case wire.OpCreateUser:
		q, err := wire.DecodeCreateUser(body)
		return noOptions(q.Options, err)
	case wire.OpUpdateUser:
		q, err := wire.DecodeUpdateUser(body)
		return noOptions(q.Options, err)
	case wire.OpCreateTopic:
		return checkCreateTopic(body)
	case wire.OpUpdateTopic:
		return v.checkUpdateTopic(body)
	case wire.OpCreatePartitions, wire.OpDeletePartitions:
		q, err := wire.DecodePartitions(body)
		switch {
		case err != nil:
			return wire.CodeInvalidCommand
		case q.Count == 0 || q.Count > wire.MaxPartitions:
			return wire.CodeTooManyPartitions
		}
		return 0
	case wire.OpCreateToken:
		if _, err := wire.DecodeCreateToken(body); err != nil {
			return wire.CodeInvalidCommand
		}
		return v.tokenQuota(user, 0)
	}
	return decodes(op, body)
}

// decodes tests the bodies that have no bounds of their own.
func decodes(op wire.Operation, body []byte) wire.Code {
	var err error
	switch op {
	case wire.OpDeleteStream, wire.OpPurgeStream:
		_, err = wire.DecodeStreamTarget(body)
	case wire.OpDeleteTopic, wire.OpPurgeTopic:
		_, err = wire.DecodeTopicTarget(body)
	case wire.OpDeleteSegments:
		_, err = wire.DecodeDeleteSegments(body)
	case wire.OpCreateGroup:
		_, err = wire.DecodeCreateGroup(body)
	case wire.OpDeleteGroup, wire.OpJoinGroup, wire.OpLeaveGroup:
		_, err = wire.DecodeGroupTarget(body)
	case wire.OpDeleteUser:
		_, err = wire.DecodeUserTarget(body)
	case wire.OpChangePassword:
		_, err = wire.DecodeChangePassword(body)
	case wire.OpUpdatePermissions:
		_, err = wire.DecodeUpdatePermissions(body)
	case wire.OpDeleteToken:
		_, err = wire.DecodeDeleteToken(body)
	default:
		return wire.CodeInvalidCommand
	}
	if err != nil {
		return wire.CodeInvalidCommand
	}
	return 0
}

// appendCanonical appends a body that passed Check and is logged as the client sent it, without
// bytes behind its last field.
func appendCanonical(dst []byte, op wire.Operation, body []byte) []byte {
	switch op {
	case wire.OpDeleteStream, wire.OpPurgeStream:
		q, _ := wire.DecodeStreamTarget(body)
		return q.Append(dst)
	case wire.OpDeleteTopic, wire.OpPurgeTopic:
		q, _ := wire.DecodeTopicTarget(body)
		return q.Append(dst)
	case wire.OpDeletePartitions:
		q, _ := wire.DecodePartitions(body)
		return q.Append(dst)
	case wire.OpCreateGroup:
		q, _ := wire.DecodeCreateGroup(body)
		return q.Append(dst)
	case wire.OpDeleteGroup:
		q, _ := wire.DecodeGroupTarget(body)
		return q.Append(dst)
	case wire.OpDeleteUser:
		q, _ := wire.DecodeUserTarget(body)
		return q.Append(dst)
	case wire.OpUpdatePermissions:
		q, _ := wire.DecodeUpdatePermissions(body)
		return q.Append(dst)
	case wire.OpChangePassword:
		q, _ := wire.DecodeLoggedChangePassword(body)
		return q.Append(dst)
	}
	return append(dst, body...) // bodies that end in an options block are consumed to the end
}

// noOptions refuses any option: streams and users have none.
func noOptions(options wire.Options, err error) wire.Code {
	switch {
	case err != nil:
		return wire.CodeInvalidCommand
	case len(options) > 0:
		return wire.CodeUnsupportedOptionKey
	}
	return 0
}

func checkCreateTopic(body []byte) wire.Code {
	q, err := wire.DecodeCreateTopic(body)
	if err != nil {
		return wire.CodeInvalidCommand
	}
	options, err := wire.ParseTopicOptions(q.Options)
	if err != nil {
		return createOptionCode(q.Options)
	}
	code := codeOf(options.Check(q.PartitionsCount))
	if code != wire.CodeInvalidOptionValue && q.PartitionsCount > wire.MaxPartitions {
		return wire.CodeTooManyPartitions
	}
	return code
}

func (v *View) checkUpdateTopic(body []byte) wire.Code {
	q, err := wire.DecodeUpdateTopic(body)
	if err != nil {
		return wire.CodeInvalidCommand
	}
	current := wire.DefaultTopicOptions()
	current.SegmentSize = wire.MinSegmentSize // of a topic that does not exist: refuse what none could take
	if t, code := v.Topic(q.Stream, q.Topic); code == 0 {
		current = t.Settings
	}
	changed, err := wire.ParseTopicUpdate(current, q.Options)
	switch {
	case err != nil:
		return updateOptionCode(current, q.Options)
	case changed.SetsMaxTopicSize() && changed.MaxTopicSize < changed.SegmentSize:
		return wire.CodeInvalidTopicSize
	}
	return 0
}

// createOptionCode is the code of the first entry that no topic could take for its key or form. A
// value that only lies outside its range counts less than an unknown key behind it.
func createOptionCode(block wire.Options) wire.Code {
	for o := range block.All() {
		if _, err := wire.ParseTopicOptions(o.Append(nil)); err != nil && !outOfRange(o) {
			return codeOf(err)
		}
	}
	return wire.CodeInvalidOptionValue
}

// updateOptionCode reports a key that updates do not take before any bad value.
func updateOptionCode(current wire.TopicOptions, block wire.Options) wire.Code {
	for o := range block.All() {
		if _, err := wire.ParseTopicUpdate(current, o.Append(nil)); err == wire.CodeUnsupportedOptionKey {
			return wire.CodeUnsupportedOptionKey
		}
	}
	return wire.CodeInvalidOptionValue
}

// outOfRange reports whether a value that was refused has a form its key takes.
func outOfRange(o wire.Pair) bool {
	switch string(o.Key) {
	case wire.OptionSegmentSize, wire.OptionSizeRequiredToSave:
		_, size := wire.ParseSize(string(o.Value))
		return o.ValueKind == wire.KindUint64 && len(o.Value) == 8 || o.ValueKind == wire.KindString && size
	}
	return false
}

func (v *View) tokenQuota(user uint32, limit int) wire.Code {
	if limit <= 0 {
		limit = v.limits.Tokens
	}
	u := v.UserByID(user)
	switch {
	case u == nil:
		return wire.CodeUnauthenticated
	case u.TokenCount() >= limit:
		return wire.CodePersonalAccessTokensLimitReached
	}
	return 0
}

// codeOf is the protocol code of a decoder's error, 0 for none.
func codeOf(err error) wire.Code {
	code, ok := err.(wire.Code)
	if err != nil && !ok {
		return wire.CodeInvalidCommand
	}
	return code
}
