package wire

import (
	"bytes"
	"testing"
)

func requestVectors() map[string]vectorCheck {
	one, two := NumericID(1), NumericID(2)
	alice := []byte("alice")
	golden := AppendOption(nil, OptionEnforceFsync, KindBool, []byte{1})
	golden = AppendOption(golden, OptionSegmentSize, KindUint64, appendU64(nil, 1<<30))
	day := AppendOption(nil, OptionMessageExpiry, KindUint64, appendU64(nil, 86400000000))
	none := Options{}
	return map[string]vectorCheck{
		"create_stream_body": body(DecodeCreateStream, CreateStreamRequest{Name: []byte("test"), Options: none}),
		"update_stream_body": body(DecodeUpdateStream, UpdateStreamRequest{Stream: one, Name: []byte("orders2"), Options: none}),
		"create_topic_body": body(DecodeCreateTopic, CreateTopicRequest{
			Stream: one, PartitionsCount: 3, Name: []byte("events"), Options: golden,
		}),
		"create_topic_body_no_options": body(DecodeCreateTopic, CreateTopicRequest{
			Stream: NamedID("orders"), PartitionsCount: 1, Name: []byte("events"), Options: none,
		}),
		"update_topic_body": body(DecodeUpdateTopic, UpdateTopicRequest{
			Stream: one, Topic: two, Name: []byte("events"), Options: day,
		}),
		"delete_segments_body": body(DecodeDeleteSegments, DeleteSegmentsRequest{
			Stream: NamedID("stream"), Topic: one, Partition: 2, Count: 3,
		}),
		"create_partitions_body": body(DecodePartitions, PartitionsRequest{Stream: one, Topic: two, Count: 4}),
		"create_group_body":      body(DecodeCreateGroup, CreateGroupRequest{Stream: one, Topic: two, Name: []byte("grp")}),

		"create_user_no_permissions": body(DecodeCreateUser, CreateUserRequest{
			Username: alice, Password: []byte("secret"), Status: UserActive, Options: none,
		}),
		"create_user_permissions": body(DecodeCreateUser, CreateUserRequest{
			Username: alice, Password: []byte("secret"), Status: UserActive,
			Permissions: nestedPermissions.Append(nil), Options: none,
		}),
		"update_user_both": body(DecodeUpdateUser, UpdateUserRequest{
			User: NumericID(5), Username: []byte("bob"), HasStatus: true, Status: UserInactive, Options: none,
		}),
		"update_user_none":         body(DecodeUpdateUser, UpdateUserRequest{User: NumericID(5), Options: none}),
		"update_permissions_clear": body(DecodeUpdatePermissions, UpdatePermissionsRequest{User: NamedID("alice")}),
		"update_permissions_set": body(DecodeUpdatePermissions, UpdatePermissionsRequest{
			User: NamedID("alice"), Permissions: somePermissions.Append(nil),
		}),
		"change_password": body(DecodeChangePassword, ChangePasswordRequest{
			User: NamedID("alice"), Current: []byte("secret"), New: []byte("newsecret"),
		}),
		"create_pat_body":       body(DecodeCreateToken, CreateTokenRequest{Name: []byte("ci"), Expiry: 3600000000}),
		"create_pat_body_never": body(DecodeCreateToken, CreateTokenRequest{Name: []byte("ci"), Expiry: Unlimited}),

		"permissions_none":         body(DecodePermissions, Permissions{}),
		"permissions_root":         body(DecodePermissions, Permissions{Global: GlobalAll}),
		"permissions_global_some":  body(DecodePermissions, somePermissions),
		"permissions_nested":       body(DecodePermissions, nestedPermissions),
		"permissions_bad_trailing": refused(DecodePermissions, CodeInvalidCommand),

		"poll_request_consumer": body(DecodePollMessages, PollMessagesRequest{
			Consumer: Consumer{ConsumerSingle, NumericID(42)}, Stream: NamedID("test_stream_id"), Topic: NamedID("test_topic_id"),
			Partition: SelectPartition(123), Strategy: Strategy{Kind: StrategyFirst}, Count: 100, AutoCommit: true,
		}),
		"poll_request_group_offset": body(DecodePollMessages, PollMessagesRequest{
			Consumer: Consumer{ConsumerGroup, NamedID("grp")}, Stream: one, Topic: two,
			Partition: SelectPartition(0), Strategy: Strategy{StrategyOffset, 501}, Count: 10,
		}),
		"poll_request_next_no_partition": body(DecodePollMessages, PollMessagesRequest{
			Consumer: Consumer{ConsumerSingle, one}, Stream: one, Topic: two,
			Strategy: Strategy{Kind: StrategyNext}, Count: 5, AutoCommit: true,
		}),
		"store_offset_request": body(DecodeStoreOffset, StoreOffsetRequest{
			OffsetTarget: OffsetTarget{Consumer{ConsumerSingle, one}, one, two, SelectPartition(0)}, Offset: 69, Ack: AckQuorum,
		}),
		"delete_offset_request": body(DecodeDeleteOffset, DeleteOffsetRequest{
			OffsetTarget: OffsetTarget{Consumer{ConsumerGroup, NamedID("grp")}, one, two, SelectPartition(0)}, Ack: AckNone,
		}),
		"get_offset_request": body(DecodeOffsetTarget, OffsetTarget{Consumer{ConsumerSingle, one}, one, two, SelectPartition(3)}),

		"send_messages_explicit_partition": sends("batch_one_message", SendMessagesRequest{
			Stream: one, Topic: two, Partitioning: Partitioning{Kind: PartitioningPartition, Partition: 3}, MessagesCount: 1,
		}),
		"send_messages_string_ids_key": sends("batch_two_messages_headers", SendMessagesRequest{
			Stream: NamedID("orders"), Topic: NamedID("events"),
			Partitioning: Partitioning{Kind: PartitioningKey, Key: []byte("order-key")}, MessagesCount: 2,
		}),
		"send_messages_balanced": sends("batch_one_message", SendMessagesRequest{
			Stream: one, Topic: two, Partitioning: Partitioning{Kind: PartitioningBalanced}, MessagesCount: 1,
		}),
		"golden_produce_body": func(t *testing.T, b []byte) {
			q, err := DecodeSendMessages(b)
			if err != nil {
				t.Fatal(err)
			}
			batch, err := AppendBatch(nil, []NewMessage{
				{ID: U128{Lo: 7}, Timestamp: 1000, Payload: []byte("first-payload")},
				{ID: U128{Lo: 8}, Timestamp: 1050, Payload: []byte("second-payload"), UserHeaders: []byte{1, 2, 3, 4, 5, 6, 7, 8, 9}},
			})
			if err != nil {
				t.Fatal(err)
			}
			m := collectMessages(q.Batch)
			if len(m) != 2 || m[0].Checksum != 0x7596755a20b9d2bf || m[1].Checksum != 0xc0b78e751c7e6bd6 || m[1].TimestampDelta != 50 {
				t.Fatalf("messages %+v", m)
			}
			batch, err = AppendBatch(batch[:0], []NewMessage{
				{ID: U128{Lo: 7}, Timestamp: 1000, Payload: m[0].Payload, UserHeaders: m[0].UserHeaders},
				{ID: U128{Lo: 8}, Timestamp: 1050, Payload: m[1].Payload, UserHeaders: m[1].UserHeaders},
			})
			if err != nil || !bytes.Equal(batch, q.Batch) {
				t.Errorf("built\n %x, %v, want\n %x", batch, err, q.Batch)
			}
			if string(m[0].Payload) != "first-payload" || q.Verify() != nil || q.Partitioning.Kind != PartitioningBalanced {
				t.Errorf("%+v, %v", q, q.Verify())
			}
		},

		"login_register_body": login(
			LoginPrefix{ProtocolVersion, []byte("go-sdk"), []byte("0.9.0")},
			&LoginRequest{Username: []byte("iggy"), Password: []byte("iggy"), Context: []byte{}}, nil,
		),
		"login_register_body_context": login(
			LoginPrefix{ProtocolVersion, []byte("rust-sdk"), []byte("0.11.0-edge.4")},
			&LoginRequest{Username: alice, Password: []byte("secret-password"), Context: []byte("ctx")}, nil,
		),
		"login_register_pat_body": login(
			LoginPrefix{ProtocolVersion, []byte("go-sdk"), []byte("0.9.0")}, nil,
			&TokenLoginRequest{Token: []byte("QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="), Context: []byte{}},
		),

		"describe_options_body_topic": body(DecodeDescribeOptions, DescribeOptionsRequest{Scope: ScopeTopic}),
		"get_snapshot_body": body(DecodeGetSnapshot, GetSnapshotRequest{
			Compression: SnapshotDeflated, Types: []byte{byte(SnapshotResourceUsage), byte(SnapshotServerLogs)},
		}),
		"flush_body": body(DecodeFlush, FlushRequest{Stream: one, Topic: two, Partition: 3, Sync: true}),
	}
}

var somePermissions = Permissions{Global: GlobalReadServers | GlobalPollMessages | GlobalSendMessages}

var nestedPermissions = Permissions{
	Global: GlobalReadStreams,
	Streams: []StreamPermissions{
		{
			Stream: 1, Rights: StreamRead | StreamReadTopics | StreamPollMessages,
			Topics: []TopicPermissions{{10, TopicManage | TopicRead}, {11, TopicRead | TopicPollMessages | TopicSendMessages}},
		},
		{Stream: 2, Rights: StreamManage},
	},
}

// sends checks a send whose batch is another vector.
func sends(batch string, want SendMessagesRequest) vectorCheck {
	return func(t *testing.T, b []byte) {
		want.Batch = vectorBytes(t, batch)
		body(DecodeSendMessages, want)(t, b)
		if err := want.Verify(); err != nil {
			t.Error(err)
		}
		wrong := want
		wrong.MessagesCount++
		if err := wrong.Verify(); err != CodeInvalidCommand {
			t.Errorf("count %d: %v", wrong.MessagesCount, err)
		}
	}
}

// login checks a login body; the shape that is nil must not decode.
func login(prefix LoginPrefix, password *LoginRequest, token *TokenLoginRequest) vectorCheck {
	return func(t *testing.T, b []byte) {
		got, rest, err := DecodeLoginPrefix(b)
		if err != nil || !bytes.Equal(got.Append(nil), prefix.Append(nil)) || !AcceptsVersion(got.ProtocolVersion) {
			t.Fatalf("prefix %+v, %v", got, err)
		}
		front := prefix.Append(nil)
		if password != nil {
			body(DecodeLogin, *password)(t, rest)
			if enc := password.Append(front); !bytes.Equal(enc, b) || !password.WithinPolicy() {
				t.Errorf("encoded %x, policy %v", enc, password.WithinPolicy())
			}
		} else if q, err := DecodeLogin(rest); err == nil {
			t.Errorf("password shape decoded: %+v", q)
		}
		if token != nil {
			body(DecodeTokenLogin, *token)(t, rest)
			if enc := token.Append(front); !bytes.Equal(enc, b) {
				t.Errorf("encoded %x", enc)
			}
		}
	}
}
