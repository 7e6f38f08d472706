package wire

import "testing"

// bodySample is one decoder with bytes it takes. decode returns what its result encodes to.
type bodySample struct {
	name   string
	bytes  []byte
	decode func([]byte) ([]byte, error)
}

func sample[T appender](name string, decode func([]byte) (T, error), value T) bodySample {
	return bodySample{name, value.Append(nil), func(b []byte) ([]byte, error) {
		got, err := decode(b)
		if err != nil {
			return nil, err
		}
		return got.Append(nil), nil
	}}
}

func listSample[T appender](name string, decode func([]byte) ([]T, error), values ...T) bodySample {
	return bodySample{name, appendAll(nil, values), func(b []byte) ([]byte, error) {
		got, err := decode(b)
		if err != nil {
			return nil, err
		}
		return appendAll(nil, got), nil
	}}
}

func rawSample(name string, bytes []byte, decode func([]byte) ([]byte, error)) bodySample {
	return bodySample{name, bytes, decode}
}

// bodySamples lists every decoder of a client-plane body once.
func bodySamples(t testing.TB) []bodySample {
	stream, topic, group := NamedID("orders"), NumericID(2), NamedID("zażółć")
	consumer := Consumer{ConsumerGroup, NamedID("grp")}
	target := OffsetTarget{consumer, stream, topic, SelectPartition(3)}
	options := DefaultTopicOptions().sampleBlock()
	batch, err := AppendBatch(nil, []NewMessage{
		{ID: U128{1, 2}, Timestamp: 5, Payload: []byte("payload"), UserHeaders: []byte("headers")},
		{ID: U128{3, 4}, Timestamp: 9, Payload: []byte("p")},
	})
	if err != nil {
		t.Fatal(err)
	}
	topicRecord := TopicRecord{ID: 1, CreatedAt: 2, PartitionsCount: 2, Compression: CompressionGzip, Name: "t", Explicit: options}
	streamRecord := StreamRecord{ID: 3, TopicsCount: 1, Name: "s"}
	groupRecord := GroupRecord{ID: 4, PartitionsCount: 3, MembersCount: 2, Name: "g"}
	userRecord := UserRecord{ID: 5, Status: UserActive, Username: "u"}
	node := ClusterNode{Name: "n", Address: "::1", TCP: 1, QUIC: 2, HTTP: 3, WebSocket: 4, Role: NodeFollower}
	attach := AttachSession{U128{1, 2}, 3, 4}
	return []bodySample{
		sample("StreamTarget", DecodeStreamTarget, StreamTarget{stream}),
		sample("CreateStream", DecodeCreateStream, CreateStreamRequest{[]byte("s"), options}),
		sample("UpdateStream", DecodeUpdateStream, UpdateStreamRequest{stream, []byte("s"), options}),
		sample("TopicTarget", DecodeTopicTarget, TopicTarget{stream, topic}),
		sample("CreateTopic", DecodeCreateTopic, CreateTopicRequest{stream, 3, []byte("t"), options}),
		sample("UpdateTopic", DecodeUpdateTopic, UpdateTopicRequest{stream, topic, []byte("t"), options}),
		sample("Partitions", DecodePartitions, PartitionsRequest{stream, topic, 9}),
		sample("DeleteSegments", DecodeDeleteSegments, DeleteSegmentsRequest{stream, topic, 1, 2}),
		sample("GroupTarget", DecodeGroupTarget, GroupTarget{stream, topic, group}),
		sample("CreateGroup", DecodeCreateGroup, CreateGroupRequest{stream, topic, []byte("g")}),
		sample("UserTarget", DecodeUserTarget, UserTarget{NamedID("bob")}),
		sample("CreateUser", DecodeCreateUser, CreateUserRequest{
			[]byte("bob"), []byte("secret"), UserInactive, nestedPermissions.Append(nil), options,
		}),
		sample("UpdateUser", DecodeUpdateUser, UpdateUserRequest{NumericID(0), []byte("bob"), true, UserActive, options}),
		sample("UpdatePermissions", DecodeUpdatePermissions, UpdatePermissionsRequest{NumericID(1), nestedPermissions.Append(nil)}),
		sample("ChangePassword", DecodeChangePassword, ChangePasswordRequest{NumericID(1), []byte("old"), []byte("new")}),
		sample("CreateToken", DecodeCreateToken, CreateTokenRequest{[]byte("ci"), 7}),
		sample("DeleteToken", DecodeDeleteToken, DeleteTokenRequest{[]byte("ci")}),
		sample("SendMessages", DecodeSendMessages, SendMessagesRequest{
			stream, topic, Partitioning{Kind: PartitioningKey, Key: []byte("k")}, 2, batch,
		}),
		sample("PollMessages", DecodePollMessages, PollMessagesRequest{
			consumer, stream, topic, SelectPartition(1), Strategy{StrategyNext, 0}, 10, true,
		}),
		sample("OffsetTarget", DecodeOffsetTarget, target),
		sample("StoreOffset", DecodeStoreOffset, StoreOffsetRequest{target, 7, AckQuorum}),
		sample("DeleteOffset", DecodeDeleteOffset, DeleteOffsetRequest{target, AckNone}),
		sample("Flush", DecodeFlush, FlushRequest{stream, topic, 1, true}),
		sample("DescribeOptions", DecodeDescribeOptions, DescribeOptionsRequest{ScopeUser}),
		sample("GetClient", DecodeGetClient, GetClientRequest{9}),
		sample("GetSnapshot", DecodeGetSnapshot, GetSnapshotRequest{SnapshotXz, []byte{1, 2, 6}}),
		sample("AttachSession", DecodeAttachSession, attach),
		sample("PollRouting", DecodePollRouting, PollRouting{attach, node}),
		sample("Login", DecodeLogin, LoginRequest{[]byte("iggy"), []byte("iggy"), []byte("context")}),
		sample("TokenLogin", DecodeTokenLogin, TokenLoginRequest{[]byte("token"), []byte("context")}),
		rawSample("LoginPrefix", LoginPrefix{ProtocolVersion, []byte("sdk"), []byte("1")}.Append(nil), func(b []byte) ([]byte, error) {
			p, _, err := DecodeLoginPrefix(b)
			return p.Append(nil), err
		}),
		rawSample("LoginReply", vectorLogin.Append(AppendSuccess(nil)), func(b []byte) ([]byte, error) {
			p, err := DecodeLoginReply(b)
			return p.Append(AppendSuccess(nil)), err
		}),
		rawSample("Result", AppendRejection(nil, CodeUnauthorized), func(b []byte) ([]byte, error) {
			payload, err := DecodeResult(b)
			if code, rejected := err.(Code); rejected && code != CodeInvalidCommand {
				return AppendRejection(nil, code), nil
			}
			return append(AppendSuccess(nil), payload...), err
		}),
		sample("Permissions", DecodePermissions, nestedPermissions),
		rawSample("Options", options, func(b []byte) ([]byte, error) {
			o, err := DecodeOptions(b)
			return o, err
		}),
		rawSample("UserHeaders", Pair{KindString, []byte("k"), KindUint8, []byte{1}}.Append(nil), func(b []byte) ([]byte, error) {
			h, err := DecodeUserHeaders(b)
			return h, err
		}),

		sample("Stream", DecodeStream, streamRecord),
		listSample("Streams", DecodeStreams, streamRecord, streamRecord),
		sample("StreamDetails", DecodeStreamDetails, StreamDetails{streamRecord, []TopicRecord{topicRecord}}),
		sample("TopicDetails", DecodeTopicDetails, TopicDetails{topicRecord, []PartitionRecord{{ID: 0}, {ID: 1, SizeBytes: 7}}}),
		rawSample("Topics", topicRecord.Append(AppendCount(nil, 1)), func(b []byte) ([]byte, error) {
			topics, err := DecodeTopics(b)
			return appendAll(AppendCount(nil, uint32(len(topics))), topics), err
		}),
		listSample("Groups", DecodeGroups, groupRecord, groupRecord),
		sample("GroupDetails", DecodeGroupDetails, GroupDetails{groupRecord, []MemberRecord{{0, []uint32{0, 2}}, {1, nil}}}),
		sample("GroupAssignment", DecodeGroupAssignment, GroupAssignment{7, []uint32{1, 2}}),
		listSample("Users", DecodeUsers, userRecord, userRecord),
		sample("UserDetails", DecodeUserDetails, UserDetails{userRecord, &nestedPermissions}),
		listSample("Tokens", DecodeTokens, TokenRecord{"ci", 5}, TokenRecord{"cd", 0}),
		rawSample("RawToken", AppendRawToken(nil, "token"), func(b []byte) ([]byte, error) {
			token, err := DecodeRawToken(b)
			return AppendRawToken(nil, token), err
		}),
		rawSample("Poll", PollHeader{1, 2, 2}.Append(nil), func(b []byte) ([]byte, error) {
			h, run, err := DecodePoll(b)
			return append(h.Append(nil), run...), err
		}),
		sample("Offset", DecodeOffset, OffsetRecord{1, 2, 3}),
		rawSample("Confirmations", AppendConfirmation(nil, Confirmation{1, 2, 3, 4}), func(b []byte) ([]byte, error) {
			c, err := DecodeConfirmations(b)
			if err != nil || len(c) != 1 {
				return append([]byte(nil), b...), err
			}
			return AppendConfirmation(nil, c[0]), nil
		}),
		rawSample("Stats", (&Stats{Hostname: "h", Caches: []CacheStats{{Stream: 1}}}).Append(nil), func(b []byte) ([]byte, error) {
			s, err := DecodeStats(b)
			return s.Append(nil), err
		}),
		sample("ClusterMetadata", DecodeClusterMetadata, ClusterMetadata{"c", []ClusterNode{node, node}}),
		listSample("Clients", DecodeClients, ClientRecord{ID: 1, Address: "a"}, ClientRecord{ID: 2, Address: "b"}),
		sample("ClientDetails", DecodeClientDetails, ClientDetails{ClientRecord{ID: 1, GroupsCount: 1}, []GroupMembership{{1, 2, 3}}}),
		rawSample("OptionCatalog", AppendTopicCatalog(nil, GenerationReleased), func(b []byte) ([]byte, error) {
			records, err := DecodeOptionCatalog(b)
			return appendAll(AppendCount(nil, uint32(len(records))), records), err
		}),
	}
}

func (o TopicOptions) sampleBlock() Options {
	return o.AppendDerived(nil, GenerationReleased)
}
