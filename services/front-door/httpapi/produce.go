package httpapi

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/bits"
	"net/http"
	"strconv"
	"time"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/wire"
)

// production is the body of a produce: where to, and what. Decoded bytes stand in arena.
type production struct {
	*reader
	arena    []byte
	kind     wire.PartitioningKind
	value    []byte
	messages []wire.NewMessage
	now      uint64 // µs
}

var partitionings = []string{"balanced", "partition_id", "messages_key"}

// produce serves POST …/messages.
func produce(c *call) error {
	topic, err := c.topic()
	if err != nil {
		return err
	}
	query := c.query()
	quiet := query.word("ack", "replicated", "none") == 1
	if err := query.err(); err != nil {
		return err
	}
	p, err := c.production()
	if err != nil {
		return err
	}
	if !c.mayOn(topic.Stream, topic.Topic, metadata.RightSend) {
		return refusal(wire.CodeUnauthorized)
	}
	if len(p.messages) == 0 {
		return refusal(wire.CodeInvalidMessagesCount)
	}
	q := wire.SendMessagesRequest{Stream: topic.Stream, Topic: topic.Topic, MessagesCount: uint32(len(p.messages))}
	var code wire.Code
	if q.Partitioning, code = p.partitioning(); code != 0 {
		return refusal(code)
	}
	if err := c.api.writes.enter(c.caller.key); err != nil {
		return err
	}
	f, err := c.sendFrame(&q, p.messages)
	if err != nil {
		c.api.writes.leave(c.caller.key)
		return err
	}
	if quiet {
		return c.produceQuietly(f)
	}
	defer c.api.writes.leave(c.caller.key)
	return c.produce(f)
}

// produce sends and answers with where the batch stands.
func (c *call) produce(f *buffer.Frame) error {
	r := c.api.local.WritePartition(c.caller.user, wire.OpSendMessages, f)
	defer r.Release()
	switch {
	case r.Status == wire.CodeTransientNotCommitted:
		return errProduceUnsure
	case r.Status != 0:
		return refusal(r.Status)
	}
	list, err := wire.DecodeConfirmations(r.Body)
	if err != nil {
		return err
	}
	out := []byte(`{"confirmations":[`)
	for i, one := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendUint(append(out, `{"stream_id":`...), uint64(one.Stream), 10)
		out = strconv.AppendUint(append(out, `,"topic_id":`...), uint64(one.Topic), 10)
		out = strconv.AppendUint(append(out, `,"partition_id":`...), uint64(one.Partition), 10)
		out = append(strconv.AppendUint(append(out, `,"base_offset":`...), one.BaseOffset, 10), '}')
	}
	c.w.Header().Set("Iggy-Durability", "replicated-memory")
	return c.send(http.StatusCreated, jsonType, append(out, "]}"...))
}

// produceQuietly answers before the send is confirmed, wherever it ends.
func (c *call) produceQuietly(f *buffer.Frame) error {
	user, key, api := c.caller.user, c.caller.key, c.api
	api.background.Go(func() {
		defer api.writes.leave(key)
		r := api.local.WritePartition(user, wire.OpSendMessages, f)
		if r.Status != 0 {
			api.log.Debug("unconfirmed send failed", "code", r.Status.Name())
		}
		r.Release()
	})
	c.w.Header().Set("Iggy-Durability", "none")
	c.w.Header().Set("Content-Length", "0")
	c.head(http.StatusAccepted, "", 0)
	return nil
}

// sendFrame lays the request out: 256 free bytes, the routing, the batch.
func (c *call) sendFrame(q *wire.SendMessagesRequest, messages []wire.NewMessage) (*buffer.Frame, error) {
	routing := q.AppendRouting(make([]byte, wire.HeaderSize))
	size := len(routing) + wire.BatchHeaderSize
	for i := range messages {
		size += wire.FrameHeaderSize + len(messages[i].Payload) + len(messages[i].UserHeaders)
	}
	f, err := c.api.frame(size)
	if err != nil {
		return nil, err
	}
	b := append(f.Bytes()[:0], routing...)
	if _, err := wire.AppendBatch(b, messages); err != nil {
		f.Release()
		return nil, refusal(wire.CodeInvalidMessagesCount)
	}
	return f, nil
}

// production reads the body.
func (c *call) production() (*production, error) {
	b, err := c.body()
	if err != nil {
		return nil, err
	}
	arena, err := c.frame(max(1, len(b.text)))
	if err != nil {
		return nil, err
	}
	p := newProduction(b, arena.Bytes()[:0])
	return p, p.read()
}

// newProduction decodes from b into arena, whose capacity is at least the size of b's text.
func newProduction(b *reader, arena []byte) *production {
	return &production{reader: b, arena: arena, now: uint64(time.Now().UnixMicro())}
}

func (p *production) read() error {
	p.object(p.member)
	if p.kind == 0 {
		p.unfit("The field partitioning is missing.")
	}
	if p.messages == nil {
		p.unfit("The field messages is missing.")
	}
	return p.end()
}

// member reads the members of the body: two, each once, and no other.
func (p *production) member(key []byte) {
	switch string(key) {
	case "partitioning":
		if p.kind != 0 {
			p.unfit("The field partitioning is given twice.")
		}
		p.readPartitioning()
	case "messages":
		if p.messages != nil {
			p.unfit("The field messages is given twice.")
		}
		p.messages = []wire.NewMessage{}
		p.list(p.message)
	default:
		p.unfit("Unknown field.")
	}
}

func (p *production) readPartitioning() {
	p.record([]string{"kind", "value"}, 2, func(i int) {
		if i == 1 {
			p.value = p.base64()
			return
		}
		at := indexOf(partitionings, p.str())
		if at < 0 {
			p.unfit("Expected balanced, partition_id or messages_key.")
		}
		p.kind = wire.PartitioningKind(at + 1)
	})
}

// partitioning judges what readPartitioning read.
func (p *production) partitioning() (q wire.Partitioning, code wire.Code) {
	q.Kind = p.kind
	switch {
	case p.kind == wire.PartitioningBalanced:
		return q, 0
	case len(p.value) == 0 || len(p.value) > wire.MaxName:
		return q, wire.CodeInvalidKeyValueLength
	case p.kind == wire.PartitioningKey:
		q.Key = p.value
	case len(p.value) < 4:
		return q, wire.CodeInvalidCommand
	default:
		q.Partition = binary.LittleEndian.Uint32(p.value)
	}
	return q, 0
}

var messageFields = []string{"payload", "id", "user_headers"}

// message reads one message.
func (p *production) message() {
	m := wire.NewMessage{Timestamp: p.now}
	p.record(messageFields, 1, func(i int) {
		switch i {
		case 0:
			if m.Payload = p.base64(); len(m.Payload) == 0 || len(m.Payload) > wire.MaxPayload {
				p.unfit("Expected a payload.")
			}
		case 1:
			m.ID = p.messageID()
		case 2:
			m.UserHeaders = p.userHeaders()
		}
	})
	if m.ID.IsZero() {
		m.ID = newMessageID()
	}
	p.messages = append(p.messages, m)
}

func newMessageID() wire.U128 {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[0] |= 1 // never 0, which stands for none
	return wire.DecodeU128(b[:])
}

// base64 reads a string of base64 into the arena.
func (p *production) base64() []byte {
	text := p.str()
	n, free := base64.StdEncoding.DecodedLen(len(text)), cap(p.arena)-len(p.arena)
	if p.fault != nil || n > free { // the arena has the size of the body, which is larger
		return nil
	}
	out := p.arena[len(p.arena) : len(p.arena)+n]
	n, err := base64.StdEncoding.Strict().Decode(out, text)
	if err != nil || hasLineBreak(text) {
		p.unfit("Expected base64 text.")
		return nil
	}
	p.arena = p.arena[:len(p.arena)+n]
	return out[:n:n]
}

// hasLineBreak finds what the decoder skips in silence.
func hasLineBreak(text []byte) bool {
	return bytes.IndexByte(text, '\n') >= 0 || bytes.IndexByte(text, '\r') >= 0
}

// messageID reads a number of 64 bits, or text: a decimal number of 128 bits or a UUID.
func (p *production) messageID() wire.U128 {
	if p.next() != '"' {
		return wire.U128{Lo: p.uint(math.MaxUint64)}
	}
	id, ok := parseID(p.str())
	if !ok {
		p.unfit("Expected a message id.")
	}
	return id
}

func parseID(text []byte) (wire.U128, bool) {
	if id, ok := parseDecimal(text); ok {
		return id, true
	}
	return parseUUID(text)
}

func parseDecimal(text []byte) (id wire.U128, ok bool) {
	for _, c := range text {
		if c < '0' || c > '9' {
			return id, false
		}
		// id = id*10 + digit, in two halves
		over, hi := bits.Mul64(id.Hi, 10)
		carry, lo := bits.Mul64(id.Lo, 10)
		lo, c1 := bits.Add64(lo, uint64(c-'0'), 0)
		hi, c2 := bits.Add64(hi, carry, c1)
		if over != 0 || c2 != 0 {
			return wire.U128{}, false
		}
		id = wire.U128{Lo: lo, Hi: hi}
	}
	return id, len(text) > 0
}

// parseUUID reads 32 hex digits, most significant first, with or without the four dashes.
func parseUUID(text []byte) (wire.U128, bool) {
	if len(text) == 36 && text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-' {
		text = append(append(append(append(append([]byte(nil), text[:8]...), text[9:13]...), text[14:18]...), text[19:23]...), text[24:]...)
	}
	var b [16]byte
	if len(text) != 32 {
		return wire.U128{}, false
	}
	if _, err := hex.Decode(b[:], text); err != nil {
		return wire.U128{}, false
	}
	return wire.U128{Hi: binary.BigEndian.Uint64(b[:8]), Lo: binary.BigEndian.Uint64(b[8:])}, true
}
