package client

import (
	"encoding/binary"
	"fmt"

	"github.com/whippet-mq/whippet/libs/wire"
)

// Send appends a sealed batch (see Batch) and returns where it stands. Batch is not kept. A refusal
// is certain, except 57, after which the batch may or may not have been stored; so is it after an
// error of the connection.
func (c *Client) Send(stream, topic wire.Identifier, to wire.Partitioning, batch []byte) (wire.Confirmation, error) {
	if len(batch) < batchHeader {
		return wire.Confirmation{}, fmt.Errorf("batch of %d bytes", len(batch))
	}
	q := wire.SendMessagesRequest{
		Stream: stream, Topic: topic, Partitioning: to, MessagesCount: binary.LittleEndian.Uint32(batch[48:]),
	}
	c.begin(q.AppendRouting(c.body()))
	body, err := c.exchange(wire.OpSendMessages, 0, batch)
	if err != nil {
		return wire.Confirmation{}, err
	}
	return confirmation(body)
}

// confirmation decodes the one confirmation of a send without building a list.
func confirmation(body []byte) (wire.Confirmation, error) {
	if len(body) != 24 || binary.LittleEndian.Uint32(body) != 1 {
		return wire.Confirmation{}, fmt.Errorf("%w: confirmation of %d bytes", ErrProtocol, len(body))
	}
	u32 := binary.LittleEndian.Uint32
	return wire.Confirmation{
		Stream: u32(body[4:]), Topic: u32(body[8:]), Partition: u32(body[12:]),
		BaseOffset: binary.LittleEndian.Uint64(body[16:]),
	}, nil
}

// Polled is the answer to a poll. Batches alias the client's buffer until its next call; Messages
// walks them.
type Polled struct {
	wire.PollHeader
	Batches []byte
}

// Poll reads messages.
func (c *Client) Poll(q wire.PollMessagesRequest) (Polled, error) {
	c.begin(q.Append(c.body()))
	body, err := c.exchange(wire.OpNonReplicated, wire.CmdPollMessages, nil)
	if err != nil {
		return Polled{}, err
	}
	h, batches, err := wire.DecodePoll(body)
	if err != nil {
		return Polled{}, fmt.Errorf("%w: reply of a poll: %v", ErrProtocol, err)
	}
	return Polled{h, batches}, nil
}

// Offset reads a consumer's stored offset; ErrNotFound when there is none.
func (c *Client) Offset(t wire.OffsetTarget) (wire.OffsetRecord, error) {
	return get(c, wire.CmdGetOffset, t, wire.DecodeOffset)
}

// StoreOffset stores a consumer's offset.
func (c *Client) StoreOffset(q wire.StoreOffsetRequest) error {
	c.begin(q.Append(c.body()))
	_, err := c.exchange(wire.OpStoreOffset, 0, nil)
	return err
}

// DeleteOffset removes a consumer's stored offset.
func (c *Client) DeleteOffset(q wire.DeleteOffsetRequest) error {
	c.begin(q.Append(c.body()))
	_, err := c.exchange(wire.OpDeleteOffset, 0, nil)
	return err
}
