package wire

import (
	"bytes"
	"reflect"
	"testing"
)

const vectorTime = 1700000000000000

func replyVectors() map[string]vectorCheck {
	alice := UserRecord{ID: 3, CreatedAt: vectorTime, Status: UserActive, Username: "alice"}
	golden := AppendOption(nil, OptionEnforceFsync, KindBool, []byte{1})
	golden = AppendOption(golden, OptionSegmentSize, KindUint64, appendU64(nil, 1<<30))
	options, _ := ParseTopicOptions(golden)
	events := TopicRecord{
		ID: 0, CreatedAt: vectorTime, PartitionsCount: 2, MessageExpiry: Unlimited, Compression: CompressionNone,
		MaxTopicSize: Unlimited, Name: "events",
		Explicit: options.AppendExplicit(nil), Derived: options.AppendDerived(nil, GenerationSnapshot),
	}
	partitions := func(segments uint32) []PartitionRecord {
		return []PartitionRecord{
			{ID: 0, CreatedAt: vectorTime, SegmentsCount: segments}, {ID: 1, CreatedAt: vectorTime, SegmentsCount: segments},
		}
	}
	orders := StreamRecord{ID: 0, CreatedAt: vectorTime, TopicsCount: 1, SizeBytes: 1234, MessagesCount: 56, Name: "orders"}
	client := ClientRecord{ID: 17, UserID: 0, Transport: TransportTCP, Address: "127.0.0.1:51234", GroupsCount: 1}
	return map[string]vectorCheck{
		"send_messages_confirmation": func(t *testing.T, b []byte) {
			want := Confirmation{Stream: 1, Topic: 2, Partition: 3, BaseOffset: 4}
			got, err := DecodeConfirmations(b)
			if err != nil || len(got) != 1 || got[0] != want || !bytes.Equal(AppendConfirmation(nil, want), b) {
				t.Errorf("%+v, %v", got, err)
			}
		},
		"get_offset_reply":      body(DecodeOffset, OffsetRecord{Partition: 3, CurrentOffset: 502, StoredOffset: 69}),
		"store_offset_reply_ok": resultIs(nil),

		"result_success_empty":        resultIs(nil),
		"result_reject_stream_exists": resultIs(CodeStreamNameAlreadyExists),
		"result_transient_57":         resultIs(CodeTransientNotCommitted),
		"login_reply_transient":       resultIs(CodeTransientNotAccepted),

		"login_reply_payload": func(t *testing.T, b []byte) {
			if got := vectorLogin.Append(nil); !bytes.Equal(got, b) {
				t.Errorf("encoded %x", got)
			}
			if got, err := DecodeLoginReply(b); err == nil {
				t.Errorf("decoded without its result section: %+v", got)
			}
		},
		"login_reply_body": func(t *testing.T, b []byte) {
			got, err := DecodeLoginReply(b)
			if err != nil || got != vectorLogin || !bytes.Equal(got.Append(AppendSuccess(nil)), b) {
				t.Errorf("%+v, %v", got, err)
			}
		},

		"create_stream_reply_body": framed(DecodeStream, StreamRecord{ID: 0, CreatedAt: vectorTime, Name: "test"}),
		"get_streams_reply": list(DecodeStreams, orders, StreamRecord{
			ID: 1, CreatedAt: vectorTime + 1, Name: "audit",
		}),
		"get_stream_reply":        body(DecodeStreamDetails, StreamDetails{orders, []TopicRecord{events}}),
		"get_topic_reply":         body(DecodeTopicDetails, TopicDetails{events, partitions(1)}),
		"create_topic_reply_body": framed(DecodeTopicDetails, TopicDetails{events, partitions(0)}),
		"get_topics_reply": func(t *testing.T, b []byte) {
			got, err := DecodeTopics(b)
			if err != nil || len(got) != 1 {
				t.Fatalf("%+v, %v", got, err)
			}
			if enc := events.Append(AppendCount(nil, 1)); !bytes.Equal(enc, b) {
				t.Errorf("encoded %x", enc)
			}
		},
		"get_topics_reply_empty": func(t *testing.T, b []byte) {
			if got, err := DecodeTopics(b); err != nil || len(got) != 0 || !bytes.Equal(AppendCount(nil, 0), b) {
				t.Errorf("%+v, %v", got, err)
			}
		},

		"get_group_reply": body(DecodeGroupDetails, GroupDetails{
			GroupRecord{ID: 0, PartitionsCount: 3, MembersCount: 2, Name: "grp"},
			[]MemberRecord{{0, []uint32{0, 2}}, {1, []uint32{1}}},
		}),
		"get_groups_reply": list(DecodeGroups,
			GroupRecord{ID: 0, PartitionsCount: 3, MembersCount: 2, Name: "grp"},
			GroupRecord{ID: 1, PartitionsCount: 3, MembersCount: 0, Name: "grp2"},
		),
		"create_group_reply_body": framed(DecodeGroupDetails, GroupDetails{
			GroupRecord: GroupRecord{ID: 0, PartitionsCount: 3, Name: "grp"},
		}),
		"sync_group_reply": body(DecodeGroupAssignment, GroupAssignment{7, []uint32{0, 2, 4}}),

		"get_user_reply_no_permissions": body(DecodeUserDetails, UserDetails{UserRecord: alice}),
		"get_user_reply_permissions":    body(DecodeUserDetails, UserDetails{alice, &nestedPermissions}),
		"get_users_reply": list(DecodeUsers,
			UserRecord{ID: 0, CreatedAt: 1, Status: UserActive, Username: "iggy"}, alice,
		),
		"create_pat_reply_body": func(t *testing.T, b []byte) {
			payload, err := DecodeResult(b)
			if err != nil {
				t.Fatal(err)
			}
			token, err := DecodeRawToken(payload)
			if err != nil || len(token) != 68 || !bytes.Equal(AppendRawToken(AppendSuccess(nil), token), b) {
				t.Errorf("%q, %v", token, err)
			}
		},
		"get_pats_reply": func(t *testing.T, b []byte) {
			want := []TokenRecord{{"ci", le.Uint64(b[3:])}, {"cd", 0}}
			if want[0].ExpiryAt != vectorTime+3600000000 {
				t.Errorf("expiry %d", want[0].ExpiryAt)
			}
			list(DecodeTokens, want...)(t, b)
		},

		"get_me_reply": body(DecodeClientDetails, ClientDetails{client, []GroupMembership{{0, 0, 0}}}),
		"get_clients_reply": list(DecodeClients, client, ClientRecord{
			ID: 18, UserID: NoUser, Transport: TransportQUIC, Address: "127.0.0.1:51235",
		}),
		"get_stats_reply": func(t *testing.T, b []byte) {
			want := Stats{
				ProcessID: 4242, CPUUsage: 1.5, TotalCPUUsage: 12.25, MemoryUsage: 1 << 27, TotalMemory: 1 << 34,
				AvailableMemory: 1 << 33, RunTime: 60000000, StartTime: vectorTime, ReadBytes: 4096, WrittenBytes: 8192,
				MessagesSizeBytes: 1234, Streams: 2, Topics: 3, Partitions: 9, Segments: 9, Messages: 56, Clients: 4, Groups: 1,
				Hostname: "host", OSName: "Linux", OSVersion: "6.1", KernelVersion: "6.1.0-generic", ServerVersion: "0.9.0-edge.5",
				ServerSemver: 9000, Threads: 8, FreeDiskSpace: 1 << 36, TotalDiskSpace: 1 << 37,
			}
			got, err := DecodeStats(b)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("decoded\n %+v, %v, want\n %+v", got, err, want)
			}
			if enc := want.Append(nil); !bytes.Equal(enc, b) {
				t.Errorf("encoded %x", enc)
			}
		},
		"cluster_metadata_reply": body(DecodeClusterMetadata, ClusterMetadata{
			"single-node", []ClusterNode{{Name: "iggy-node", Address: "127.0.0.1", TCP: 8090, QUIC: 8080, HTTP: 3000, WebSocket: 8092}},
		}),
		"describe_options_reply": func(t *testing.T, b []byte) {
			want := OptionRecord{OptionEnforceFsync, KindBool, []byte{0}, "sync on write"}
			got, err := DecodeOptionCatalog(b)
			if err != nil || len(got) != 1 || got[0].Key != want.Key || !bytes.Equal(want.Append(AppendCount(nil, 1)), b) {
				t.Errorf("%+v, %v", got, err)
			}
		},
		"describe_options_reply_empty": func(t *testing.T, b []byte) {
			if got, err := DecodeOptionCatalog(b); err != nil || len(got) != 0 {
				t.Errorf("%+v, %v", got, err)
			}
		},
	}
}

var vectorLogin = LoginReply{UserID: 7, Session: 128, ProtocolVersion: 11264, ServerVersion: "0.11.0-edge.1"}

// resultIs checks a body that is a result section alone; nil is success.
func resultIs(want error) vectorCheck {
	return func(t *testing.T, b []byte) {
		payload, err := DecodeResult(b)
		if err != want || len(payload) != 0 {
			t.Errorf("%x, %v, want %v", payload, err, want)
		}
		enc := AppendSuccess(nil)
		if code, rejected := want.(Code); rejected {
			enc = AppendRejection(nil, code)
		}
		if !bytes.Equal(enc, b) {
			t.Errorf("encoded %x", enc)
		}
	}
}
