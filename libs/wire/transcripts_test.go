package wire

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// transcripts is where the recorded conversations stand; they are the conformance tool's.
const transcripts = "../../tools/conformance/transcripts"

// exchange is one line of a transcript: a request and, where one was recorded, its answer.
type exchange struct {
	Number int    `json:"n"`
	Name   string `json:"name"`
	Note   string `json:"note"`
	Send   string `json:"send"`
	Frame  string `json:"frame"`
	Expect string `json:"expect"`
	Better bool   `json:"better"`
	Subst  []any  `json:"subst"`

	request, reply []byte
}

var repeatedBytes = regexp.MustCompile(`\(([0-9a-f]{2})\*([0-9]+)\)`)

// transcriptBytes reads hex in which (00*66) stands for 66 bytes 00.
func transcriptBytes(text string) ([]byte, error) {
	return hex.DecodeString(repeatedBytes.ReplaceAllStringFunc(text, func(m string) string {
		parts := repeatedBytes.FindStringSubmatch(m)
		n, err := strconv.Atoi(parts[2])
		if err != nil {
			return m
		}
		return strings.Repeat(parts[1], n)
	}))
}

// conversation is the requests of one transcript.
type conversation struct {
	name      string
	exchanges []exchange
}

// loadTranscripts reads every client-plane transcript, once for all tests.
var loadTranscripts = sync.OnceValues(func() (all []conversation, err error) {
	for _, directory := range []string{"client", "released-0.11.0"} {
		files, err := filepath.Glob(filepath.Join(transcripts, directory, "*.jsonl"))
		if err != nil {
			return nil, err
		}
		for _, path := range files {
			c := conversation{name: directory + "/" + strings.TrimSuffix(filepath.Base(path), ".jsonl")}
			if c.exchanges, err = readTranscript(path); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			all = append(all, c)
		}
	}
	return all, nil
})

func readTranscript(path string) (exchanges []exchange, err error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(file) {
		var e exchange
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, err
		}
		if e.request, err = transcriptBytes(e.Send); err != nil {
			return nil, err
		}
		if e.reply, err = transcriptBytes(e.Frame); err != nil {
			return nil, err
		}
		if len(e.request) >= HeaderSize {
			exchanges = append(exchanges, e)
		}
	}
	return exchanges, nil
}

// eachExchange calls f for every recorded request frame.
func eachExchange(t *testing.T, f func(t *testing.T, e exchange)) {
	t.Helper()
	all, err := loadTranscripts()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("no transcripts at " + transcripts)
	}
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			for _, e := range c.exchanges {
				f(t, e)
			}
		})
	}
}

// decodeRequest decodes the body that h announces and returns what it encodes to. ok is false for a
// header that announces no body of the client plane.
func decodeRequest(h *RequestHeader, b []byte) (again []byte, err error, ok bool) {
	switch h.Operation {
	case OpRegister:
		return nil, decodeLoginBody(b), true
	case OpCreateStream:
		return encoded(DecodeCreateStream(b))
	case OpUpdateStream:
		return encoded(DecodeUpdateStream(b))
	case OpDeleteStream, OpPurgeStream:
		return encoded(DecodeStreamTarget(b))
	case OpCreateTopic:
		return encoded(DecodeCreateTopic(b))
	case OpUpdateTopic:
		return encoded(DecodeUpdateTopic(b))
	case OpDeleteTopic, OpPurgeTopic:
		return encoded(DecodeTopicTarget(b))
	case OpCreatePartitions, OpDeletePartitions:
		return encoded(DecodePartitions(b))
	case OpDeleteSegments:
		return encoded(DecodeDeleteSegments(b))
	case OpCreateGroup:
		return encoded(DecodeCreateGroup(b))
	case OpDeleteGroup, OpJoinGroup, OpLeaveGroup:
		return encoded(DecodeGroupTarget(b))
	case OpCreateUser:
		return encoded(DecodeCreateUser(b))
	case OpUpdateUser:
		return encoded(DecodeUpdateUser(b))
	case OpDeleteUser:
		return encoded(DecodeUserTarget(b))
	case OpChangePassword:
		return encoded(DecodeChangePassword(b))
	case OpUpdatePermissions:
		return encoded(DecodeUpdatePermissions(b))
	case OpCreateToken:
		return encoded(DecodeCreateToken(b))
	case OpDeleteToken:
		return encoded(DecodeDeleteToken(b))
	case OpSendMessages:
		q, err := DecodeSendMessages(b)
		if err == nil {
			err = q.Verify()
		}
		return encoded(q, err)
	case OpStoreOffset:
		return encoded(DecodeStoreOffset(b))
	case OpDeleteOffset:
		return encoded(DecodeDeleteOffset(b))
	case OpNonReplicated:
		return decodeRead(h.Code, b)
	}
	return nil, nil, false
}

func decodeRead(code Cmd, b []byte) (again []byte, err error, ok bool) {
	switch code {
	case CmdDescribeOptions:
		return encoded(DecodeDescribeOptions(b))
	case CmdGetSnapshot:
		return encoded(DecodeGetSnapshot(b))
	case CmdAttachSession:
		return encoded(DecodeAttachSession(b))
	case CmdGetClient:
		return encoded(DecodeGetClient(b))
	case CmdGetUser:
		return encoded(DecodeUserTarget(b))
	case CmdPollMessages, CmdGetPollRouting, CmdRoutedPoll:
		return encoded(DecodePollMessages(b))
	case CmdGetOffset, CmdGetOffsetRouting:
		return encoded(DecodeOffsetTarget(b))
	case CmdGetStream, CmdGetTopics:
		return encoded(DecodeStreamTarget(b))
	case CmdGetTopic, CmdGetGroups:
		return encoded(DecodeTopicTarget(b))
	case CmdGetGroup, CmdSyncGroup:
		return encoded(DecodeGroupTarget(b))
	}
	return nil, nil, false
}

func encoded[T appender](value T, err error) ([]byte, error, bool) {
	if err != nil {
		return nil, err, true
	}
	return value.Append(nil), nil, true
}

// decodeLoginBody fails when neither shape decodes.
func decodeLoginBody(b []byte) error {
	_, rest, err := DecodeLoginPrefix(b)
	if err != nil {
		return err
	}
	if _, err := DecodeLogin(rest); err == nil {
		return nil
	}
	_, err = DecodeTokenLogin(rest)
	return err
}

// notCanonical finds the notes of requests whose flags are none that an encoder writes.
var notCanonical = regexp.MustCompile("flags? [02]|byte 2")

// Every recorded request decodes, or was refused when it was recorded.
func TestTranscriptRequests(t *testing.T) {
	eachExchange(t, func(t *testing.T, e exchange) {
		var h RequestHeader
		if h.Decode(e.request) != nil || h.Validate() != nil || uint64(h.Size) != uint64(len(e.request)) || judgedBefore(e) {
			return
		}
		body := e.request[HeaderSize:]
		again, err, ok := decodeRequest(&h, body)
		switch {
		case !ok:
		case err == nil && refusedBody(e):
			t.Errorf("step %d %s: body %x decodes", e.Number, e.Note, body)
		case err != nil && !refusedBody(e) && !quietlyEmpty(&h, e):
			t.Errorf("step %d %s %s: body %x: %v", e.Number, e.Name, e.Note, body, err)
		case err == nil && again != nil && !bytes.HasPrefix(body, again) && !notCanonical.MatchString(e.Note):
			t.Errorf("step %d %s: body %x encodes to %x", e.Number, e.Note, body, again)
		}
	})
}

// judgedBefore tells that the recording server, or one that follows it, answers without a look at
// the body: no session, another protocol version, or a raw call without a body.
func judgedBefore(e exchange) bool {
	var v EvictionHeader
	if len(e.reply) >= HeaderSize && v.Decode(e.reply) == nil {
		return v.Reason == EvictNoSession || v.Reason == EvictIncompatibleProtocol
	}
	if len(e.reply) >= HeaderSize {
		return Code(le.Uint32(e.reply[216:])) == CodeUnauthenticated
	}
	return strings.Contains(e.Note, "empty body") || strings.Contains(e.Note, "protocol 0.12")
}

// refusedBody tells from the recorded answer that the body was not usable.
func refusedBody(e exchange) bool {
	var r ReplyHeader
	if len(e.reply) >= HeaderSize && r.Decode(e.reply) == nil {
		return r.Status == CodeInvalidCommand || r.Status == CodeInvalidFormat
	}
	var v EvictionHeader
	return len(e.reply) >= HeaderSize && v.Decode(e.reply) == nil && v.Reason == EvictMalformedLogin
}

// quietlyEmpty tells that a bad body was answered as if nothing was found, or with the partition
// plane's status 20, or not at all.
func quietlyEmpty(h *RequestHeader, e exchange) bool {
	if len(e.reply) < HeaderSize {
		return e.Better || e.Expect == "silence" || e.Expect == "closed"
	}
	status := Code(le.Uint32(e.reply[216:]))
	switch {
	case h.Operation.Partition():
		return status == CodeResourceNotFound || e.Better
	case h.Operation == OpDeleteSegments, h.Code == CmdGetOffset, h.Code == CmdGetClient, h.Code == CmdSyncGroup:
		return len(e.reply) == HeaderSize
	case h.Code == CmdPollMessages:
		return len(e.reply) == HeaderSize+PollHeaderSize
	}
	return status != 0
}

// Every recorded reply body decodes and encodes to itself.
func TestTranscriptReplies(t *testing.T) {
	replies := 0
	eachExchange(t, func(t *testing.T, e exchange) {
		var q RequestHeader
		var r ReplyHeader
		if q.Decode(e.request) != nil || len(e.reply) <= HeaderSize || r.Decode(e.reply) != nil || r.Status != 0 {
			return
		}
		body := e.reply[HeaderSize:]
		if again, err := decodeReply(r.Operation, q.Code, body); err != nil || again != nil && !bytes.Equal(again, body) {
			t.Errorf("step %d %s: reply %x: encodes to %x, %v", e.Number, e.Note, body, again, err)
		}
		replies++
	})
	t.Logf("%d replies", replies)
}

// decodeReply decodes a reply body and returns what it encodes to, nil when nothing can be said.
func decodeReply(op Operation, code Cmd, b []byte) ([]byte, error) {
	if op == OpNonReplicated {
		return decodeReadReply(code, b)
	}
	if op == OpSendMessages {
		c, err := DecodeConfirmations(b)
		if err != nil || len(c) != 1 {
			return nil, err
		}
		return AppendConfirmation(nil, c[0]), nil
	}
	payload, err := DecodeResult(b)
	if rejection, rejected := err.(Code); rejected {
		return AppendRejection(nil, rejection), nil
	}
	front := AppendSuccess(nil)
	switch op {
	case OpRegister:
		p, err := DecodeLoginReply(b)
		return p.Append(front), err
	case OpCreateStream:
		s, err := DecodeStream(payload)
		return s.Append(front), err
	case OpCreateTopicWithAssignments:
		d, err := DecodeTopicDetails(payload)
		return d.Append(front), err
	case OpCreateGroup:
		d, err := DecodeGroupDetails(payload)
		return d.Append(front), err
	case OpCreateUser:
		d, err := DecodeUserDetails(payload)
		return d.Append(front), err
	case OpCreateToken:
		if len(payload) == 0 { // a repeat: the token is told once
			return front, nil
		}
		token, err := DecodeRawToken(payload)
		return AppendRawToken(front, token), err
	}
	return front, nil
}

func decodeReadReply(code Cmd, b []byte) ([]byte, error) {
	switch code {
	case CmdGetStats:
		s, err := DecodeStats(b)
		return s.Append(nil), err
	case CmdGetClusterMetadata:
		m, err := DecodeClusterMetadata(b)
		return m.Append(nil), err
	case CmdDescribeOptions:
		records, err := DecodeOptionCatalog(b)
		return appendAll(AppendCount(nil, uint32(len(records))), records), err
	case CmdGetMe, CmdGetClient:
		d, err := DecodeClientDetails(b)
		return d.Append(nil), err
	case CmdGetClients:
		c, err := DecodeClients(b)
		return appendAll(nil, c), err
	case CmdGetUser:
		d, err := DecodeUserDetails(b)
		return d.Append(nil), err
	case CmdGetUsers:
		u, err := DecodeUsers(b)
		return appendAll(nil, u), err
	case CmdGetTokens:
		tokens, err := DecodeTokens(b)
		return appendAll(nil, tokens), err
	case CmdPollMessages:
		h, run, err := DecodePoll(b)
		if count, countErr := CountMessages(run); countErr != nil || count != uint64(h.MessagesCount) {
			return nil, CodeInvalidMessagesCount
		}
		return append(h.Append(nil), run...), err
	case CmdGetOffset:
		o, err := DecodeOffset(b)
		return o.Append(nil), err
	case CmdGetStream:
		d, err := DecodeStreamDetails(b)
		return d.Append(nil), err
	case CmdGetStreams:
		s, err := DecodeStreams(b)
		return appendAll(nil, s), err
	case CmdGetTopic:
		d, err := DecodeTopicDetails(b)
		return d.Append(nil), err
	case CmdGetTopics:
		topics, err := DecodeTopics(b)
		return appendAll(AppendCount(nil, uint32(len(topics))), topics), err
	case CmdGetGroup:
		d, err := DecodeGroupDetails(b)
		return d.Append(nil), err
	case CmdGetGroups:
		g, err := DecodeGroups(b)
		return appendAll(nil, g), err
	case CmdSyncGroup:
		a, err := DecodeGroupAssignment(b)
		return a.Append(nil), err
	}
	return nil, nil
}

// Options of a recorded update topic that were refused are refused, and no others.
func TestTranscriptTopicUpdates(t *testing.T) {
	updates := 0
	eachExchange(t, func(t *testing.T, e exchange) {
		var q RequestHeader
		var r ReplyHeader
		if q.Decode(e.request) != nil || q.Operation != OpUpdateTopic || len(e.reply) < HeaderSize || r.Decode(e.reply) != nil {
			return
		}
		request, err := DecodeUpdateTopic(e.request[HeaderSize:])
		if err != nil || r.Status == CodeInvalidTopicSize {
			return
		}
		updates++
		if _, err := ParseTopicUpdate(DefaultTopicOptions(), request.Options); err == nil && r.Status != 0 || err != nil && r.Status != err {
			t.Errorf("step %d %s: %v", e.Number, e.Note, err)
		}
	})
	t.Logf("%d updates", updates)
}

// What a recorded create topic stored and derived is what the options of its request give, and what
// it refused they refuse.
func TestTranscriptTopicOptions(t *testing.T) {
	created := 0
	eachExchange(t, func(t *testing.T, e exchange) {
		var q RequestHeader
		var r ReplyHeader
		if q.Decode(e.request) != nil || q.Operation != OpCreateTopic || len(e.reply) < HeaderSize || r.Decode(e.reply) != nil {
			return
		}
		request, err := DecodeCreateTopic(e.request[HeaderSize:])
		if err != nil {
			return
		}
		options, err := ParseTopicOptions(request.Options)
		switch {
		case err != nil && r.Status != err:
			t.Errorf("step %d %s: refused with %v", e.Number, e.Note, err)
			return
		case err == nil && (r.Status == CodeUnsupportedOptionKey || r.Status == CodeInvalidOptionValue):
			if options.Check(request.PartitionsCount) != r.Status {
				t.Errorf("step %d %s: accepted", e.Number, e.Note)
			}
			return
		case err == nil && r.Status == CodeInvalidTopicSize && options.Check(request.PartitionsCount) != r.Status:
			t.Errorf("step %d %s: bounds accepted", e.Number, e.Note)
			return
		}
		payload, resultErr := DecodeResult(e.reply[HeaderSize:])
		if r.Status != 0 || resultErr != nil {
			return
		}
		d, err := DecodeTopicDetails(payload)
		explicit, derived := options.AppendExplicit(nil), options.AppendDerived(nil, GenerationSnapshot)
		if err != nil || !bytes.Equal(d.Explicit, explicit) || !bytes.Equal(d.Derived, derived) ||
			d.MessageExpiry != options.MessageExpiry || d.MaxTopicSize != options.MaxTopicSize || d.Compression != options.Compression {
			t.Errorf("step %d %s: %v\n explicit %q, recorded %q\n derived %q, recorded %q", e.Number, e.Note, err, explicit, d.Explicit, derived, d.Derived)
		}
		created++
	})
	t.Logf("%d topics", created)
}
