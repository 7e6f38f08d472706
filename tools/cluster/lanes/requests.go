package lanes

import (
	"errors"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
)

// Request is what a lane asks for, again and again, on a connection that may be another one each time.
type Request func(*client.Client) error

// Sends sends one small message at a time to partition 0 of a topic.
func Sends(stream, topic string) Request {
	var b client.Batch
	number := uint64(0)
	return func(c *client.Client) error {
		number++
		b.Reset(1)
		b.Add(wire.U128{Lo: number}, []byte("small"), nil)
		_, err := c.Send(wire.NamedID(stream), wire.NamedID(topic), wire.Partitioning{Kind: wire.PartitioningPartition}, b.Seal())
		return err
	}
}

// Polls reads the last message of partition 0 of a topic.
func Polls(stream, topic string) Request {
	q := wire.PollMessagesRequest{
		Consumer: wire.Consumer{Kind: wire.ConsumerSingle, ID: wire.NumericID(1)}, Stream: wire.NamedID(stream), Topic: wire.NamedID(topic),
		Partition: wire.SelectPartition(0), Strategy: wire.Strategy{Kind: wire.StrategyLast}, Count: 1,
	}
	return func(c *client.Client) error { _, err := c.Poll(q); return err }
}

// Changes makes a stream and deletes it in turn. An answer that went with the connection leaves it open what
// there is: neither is an error then.
func Changes(name string) Request {
	exists := false
	return func(c *client.Client) error {
		var err error
		if exists {
			err = c.DeleteStream(wire.NamedID(name))
		} else {
			_, err = c.CreateStream(name)
		}
		if err == nil || errors.Is(err, wire.CodeStreamNameAlreadyExists) || errors.Is(err, wire.CodeStreamIdNotFound) {
			exists = !exists
			return nil
		}
		return err
	}
}

// Pings needs no other process than its door: what it sees is the machine's doing.
func Pings(c *client.Client) error { return c.Ping() }
