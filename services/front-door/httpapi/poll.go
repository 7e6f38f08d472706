package httpapi

import (
	"encoding/base64"
	"math/big"
	"strconv"

	"github.com/whippet-mq/whippet/libs/wire"
)

// strategies are the words for where a poll starts; two for each kind.
var strategies = []string{"offset", "o", "timestamp", "t", "first", "f", "last", "l", "next", "n"}

// poll serves GET …/messages, always as a consumer of its own.
func poll(c *call) error {
	topic, err := c.topic()
	if err != nil {
		return err
	}
	query := c.query()
	q := wire.PollMessagesRequest{
		Consumer: wire.Consumer{Kind: wire.ConsumerSingle, ID: query.consumer()}, Stream: topic.Stream, Topic: topic.Topic,
		Partition: wire.SelectPartition(uint32(query.uint("partition_id", 32, 0))),
		Strategy:  wire.Strategy{Kind: wire.StrategyKind(query.word("kind", strategies...)/2 + 1), Value: query.uint("value", 64, 0)},
		Count:     uint32(query.uint("count", 32, 10)), AutoCommit: query.word("auto_commit", "false", "true") == 1,
	}
	query.consistency()
	if err := query.err(); err != nil {
		return err
	}
	r := c.api.local.Read(c.caller.user, wire.CmdPollMessages, q.Append(nil))
	defer r.Release()
	switch r.Status {
	case 0:
	case wire.CodeStreamIdNotFound, wire.CodeTopicIdNotFound, wire.CodeStreamNameNotFound, wire.CodeTopicNameNotFound:
		return errMissing
	default:
		return refusal(r.Status)
	}
	head, batches, err := wire.DecodePoll(r.Body)
	if err != nil {
		return err
	}
	size, err := polledSize(batches)
	if err != nil {
		return err
	}
	f, err := c.frame(size)
	if err != nil {
		return err
	}
	out := appendPolled(f.Bytes()[:0], head, batches)
	r.Release()
	return c.send(200, jsonType, out)
}

// messageJSON is an upper bound of a message's JSON without payload and headers: names, and numbers
// of at most 39 digits.
const messageJSON = 512

// polledSize is an upper bound of the JSON of batches. User headers grow at most from 12 bytes, the
// least a pair takes, to the 100 or so of its JSON.
func polledSize(batches []byte) (int, error) {
	size := messageJSON
	for rest := batches; len(rest) > 0; {
		_, batch, after, err := wire.NextBatch(rest)
		if err != nil {
			return 0, err
		}
		for m := range wire.Messages(batch) {
			size += messageJSON + base64.StdEncoding.EncodedLen(len(m.Payload)) + headersSize(m.UserHeaders)
		}
		rest = after
	}
	return size, nil
}

// headerJSON is an upper bound of one header's JSON without key and value.
const headerJSON = 96

func headersSize(b []byte) int {
	headers, err := wire.DecodeUserHeaders(b)
	if err != nil {
		return base64.StdEncoding.EncodedLen(len(b))
	}
	size := 0
	for h := range headers.All() {
		size += headerJSON + base64.StdEncoding.EncodedLen(len(h.Key)) + base64.StdEncoding.EncodedLen(len(h.Value))
	}
	return size
}

func appendPolled(out []byte, head wire.PollHeader, batches []byte) []byte {
	out = appendField(out, `{"partition_id":`, uint64(head.Partition))
	out = appendField(out, `,"current_offset":`, head.CurrentOffset)
	out = appendField(out, `,"count":`, uint64(head.MessagesCount))
	out = append(out, `,"messages":[`...)
	first := true
	for rest := batches; len(rest) > 0; {
		h, batch, after, err := wire.NextBatch(rest)
		if err != nil {
			break
		}
		for m := range wire.Messages(batch) {
			if !first {
				out = append(out, ',')
			}
			first = false
			out = appendMessage(out, &h, &m)
		}
		rest = after
	}
	return append(out, "]}"...)
}

func appendField(out []byte, name string, value uint64) []byte {
	return strconv.AppendUint(append(out, name...), value, 10)
}

func appendMessage(out []byte, h *wire.BatchHeader, m *wire.Message) []byte {
	out = appendField(out, `{"header":{"checksum":`, m.Checksum)
	out = appendU128(append(out, `,"id":`...), m.ID)
	out = appendField(out, `,"offset":`, h.BaseOffset+uint64(m.OffsetDelta))
	out = appendField(out, `,"timestamp":`, h.BaseTimestamp)
	out = appendField(out, `,"origin_timestamp":`, h.OriginTimestamp+uint64(m.TimestampDelta))
	out = appendField(out, `,"user_headers_length":`, uint64(len(m.UserHeaders)))
	out = appendField(out, `,"payload_length":`, uint64(len(m.Payload)))
	out = append(out, `,"reserved":0},"payload":"`...)
	out = base64.StdEncoding.AppendEncode(out, m.Payload)
	out = append(out, `","user_headers":`...)
	return append(appendHeaders(out, m.UserHeaders), '}')
}

// appendHeaders shows user headers as entries, or as base64 text when they are none.
func appendHeaders(out, b []byte) []byte {
	headers, err := wire.DecodeUserHeaders(b)
	if err != nil {
		return append(base64.StdEncoding.AppendEncode(append(out, '"'), b), '"')
	}
	out = append(out, '[')
	for h := range headers.All() {
		if out[len(out)-1] != '[' {
			out = append(out, ',')
		}
		out = appendTyped(append(out, `{"key":`...), h.KeyKind, h.Key)
		out = append(appendTyped(append(out, `,"value":`...), h.ValueKind, h.Value), '}')
	}
	return append(out, ']')
}

func appendTyped(out []byte, kind wire.ValueKind, value []byte) []byte {
	out = append(append(append(out, `{"kind":"`...), kindName(kind)...), `","value":"`...)
	return append(base64.StdEncoding.AppendEncode(out, value), `"}`...)
}

// appendU128 writes a number of up to 39 digits.
func appendU128(out []byte, n wire.U128) []byte {
	if n.Hi == 0 {
		return strconv.AppendUint(out, n.Lo, 10)
	}
	big := new(big.Int).SetUint64(n.Hi)
	return big.Add(big.Lsh(big, 64), newBig(n.Lo)).Append(out, 10)
}

func newBig(n uint64) *big.Int { return new(big.Int).SetUint64(n) }
