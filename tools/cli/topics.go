package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
)

func (a *app) topicCommands() *cobra.Command {
	return family("topic", "Topics",
		a.command("list STREAM", "List a stream's topics", cobra.ExactArgs(1), func(c *client.Client, args []string) (any, error) {
			stream, err := identifier(args[0])
			if err != nil {
				return nil, err
			}
			topics, err := c.Topics(stream)
			var out list
			for _, t := range topics {
				out = append(out, topicRecord(t))
			}
			return out, err
		}),
		a.onTopic("get STREAM TOPIC", "Show a topic, its options and its partitions", func(c *client.Client, s, t wire.Identifier) (any, error) {
			d, err := c.Topic(s, t)
			if err != nil {
				return nil, err
			}
			return topicDetails(d), nil
		}),
		a.createTopic(), a.updateTopic(),
		a.onTopic("delete STREAM TOPIC", "Delete a topic and everything in it", func(c *client.Client, s, t wire.Identifier) (any, error) {
			return nil, c.DeleteTopic(s, t)
		}),
		a.onTopic("purge STREAM TOPIC", "Delete all messages and stored offsets of a topic", func(c *client.Client, s, t wire.Identifier) (any, error) {
			return nil, c.PurgeTopic(s, t)
		}),
	)
}

func (a *app) onTopic(use, short string, do func(c *client.Client, stream, topic wire.Identifier) (any, error)) *cobra.Command {
	return a.command(use, short, cobra.ExactArgs(2), func(c *client.Client, args []string) (any, error) {
		ids, err := identifiers(args[0], args[1])
		if err != nil {
			return nil, err
		}
		return do(c, ids[0], ids[1])
	})
}

func (a *app) createTopic() *cobra.Command {
	var partitions uint32
	var o topicOptions
	cmd := a.command("create STREAM NAME", "Make a topic", cobra.ExactArgs(2), func(c *client.Client, args []string) (any, error) {
		stream, err := identifier(args[0])
		if err != nil {
			return nil, err
		}
		block, err := o.block()
		if err != nil {
			return nil, err
		}
		d, err := c.CreateTopic(wire.CreateTopicRequest{Stream: stream, PartitionsCount: partitions, Name: []byte(args[1]), Options: block})
		if err != nil {
			return nil, err
		}
		return topicDetails(d), nil
	})
	cmd.Flags().Uint32Var(&partitions, "partitions", 1, "number of partitions, 0 to 1000")
	o.flags(cmd, true)
	return cmd
}

func (a *app) updateTopic() *cobra.Command {
	var name string
	var o topicOptions
	cmd := a.command("update STREAM TOPIC", "Change a topic's name or options", cobra.ExactArgs(2), func(c *client.Client, args []string) (any, error) {
		ids, err := identifiers(args...)
		if err != nil {
			return nil, err
		}
		block, err := o.block()
		if err != nil {
			return nil, err
		}
		if name == "" { // a request names the topic anew in every case
			d, err := c.Topic(ids[0], ids[1])
			if err != nil {
				return nil, err
			}
			name = d.Name
		}
		return nil, c.UpdateTopic(wire.UpdateTopicRequest{Stream: ids[0], Topic: ids[1], Name: []byte(name), Options: block})
	})
	cmd.Flags().StringVar(&name, "name", "", "another name")
	o.flags(cmd, false)
	return cmd
}

// topicOptions are the options a topic may be given, as text; the server judges the values.
type topicOptions struct {
	values map[string]*string
	more   []string
}

func (o *topicOptions) flags(cmd *cobra.Command, create bool) {
	o.values = map[string]*string{}
	add := func(key, help string) {
		flag := strings.ReplaceAll(key, "_", "-")
		o.values[key] = cmd.Flags().String(flag, "", help)
	}
	add("message_expiry", "how long messages stay, such as 7d or 1h 30m; never_expire; server_default")
	add("max_topic_size", "size at which the oldest segments go, such as 10GiB; unlimited; server_default")
	add("compression_algorithm", "none or gzip: a note for clients")
	if create {
		add("segment_size", "size of a segment, 1 MiB to 1 GiB in steps of 512 bytes")
		add("durability", "replicated or persisted: what an acknowledged message has reached")
		add("consumer_offset_durability", "the same for stored offsets")
	}
	cmd.Flags().StringArrayVar(&o.more, "option", nil, "any other option as KEY=VALUE")
}

// block encodes the options that were given.
func (o *topicOptions) block() (wire.Options, error) {
	var block []byte
	for _, key := range []string{
		"compression_algorithm", "consumer_offset_durability", "durability", "max_topic_size", "message_expiry", "segment_size",
	} {
		if v := o.values[key]; v != nil && *v != "" {
			block = wire.AppendOption(block, key, wire.KindString, []byte(*v))
		}
	}
	for _, text := range o.more {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" || value == "" {
			return nil, usageError{fmt.Errorf("--option %q: want KEY=VALUE", text)}
		}
		block = wire.AppendOption(block, key, wire.KindString, []byte(value))
	}
	return wire.DecodeOptions(block)
}

func topicRecord(t wire.TopicRecord) record {
	return record{
		{"id", t.ID}, {"name", t.Name}, {"partitions_count", t.PartitionsCount}, {"messages", t.MessagesCount},
		{"size", bytesCount(t.SizeBytes)}, {"message_expiry", span(t.MessageExpiry)},
		{"max_topic_size", limit(t.MaxTopicSize)}, {"created_at", instant(t.CreatedAt)},
	}
}

func topicDetails(d wire.TopicDetails) record {
	r := topicRecord(d.TopicRecord)
	options := list{}
	add := func(block wire.Options, set bool) {
		for p := range block.All() {
			options = append(options, record{{"key", string(p.Key)}, {"value", optionText(p.ValueKind, p.Value)}, {"set", set}})
		}
	}
	add(d.Explicit, true)
	add(d.Derived, false)
	partitions := list{}
	for _, p := range d.Partitions {
		partitions = append(partitions, record{
			{"id", p.ID}, {"segments", p.SegmentsCount}, {"current_offset", p.CurrentOffset}, {"messages", p.MessagesCount},
			{"size", bytesCount(p.SizeBytes)}, {"created_at", instant(p.CreatedAt)},
		})
	}
	return append(r, field{"options", options}, field{"partitions", partitions})
}

// optionText shows the value of an option or a user header.
func optionText(kind wire.ValueKind, value []byte) string {
	switch {
	case kind == wire.KindString:
		return string(value)
	case kind == wire.KindBool && len(value) == 1:
		return fmt.Sprint(value[0] != 0)
	case (kind == wire.KindUint8 || kind == wire.KindUint16 || kind == wire.KindUint32 || kind == wire.KindUint64) && len(value) <= 8:
		var n uint64
		for i, b := range value {
			n |= uint64(b) << (8 * i)
		}
		if n == wire.Unlimited {
			return "unlimited"
		}
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%x", value)
}

func (a *app) partitionCommands() *cobra.Command {
	change := func(use, short string, do func(*client.Client, wire.PartitionsRequest) error) *cobra.Command {
		return a.command(use, short, cobra.ExactArgs(3), func(c *client.Client, args []string) (any, error) {
			ids, err := identifiers(args[0], args[1])
			if err != nil {
				return nil, err
			}
			count, err := number(args[2], "COUNT")
			if err != nil {
				return nil, err
			}
			return nil, do(c, wire.PartitionsRequest{Stream: ids[0], Topic: ids[1], Count: count})
		})
	}
	return family("partition", "Partitions (topic get lists them)",
		change("create STREAM TOPIC COUNT", "Add partitions to a topic", (*client.Client).CreatePartitions),
		change("delete STREAM TOPIC COUNT", "Delete the partitions with the highest ids", (*client.Client).DeletePartitions),
	)
}

func (a *app) segmentCommands() *cobra.Command {
	return family("segment", "Segments of a partition",
		a.command("delete STREAM TOPIC PARTITION COUNT", "Delete a partition's oldest sealed segments", cobra.ExactArgs(4),
			func(c *client.Client, args []string) (any, error) {
				ids, err := identifiers(args[0], args[1])
				if err != nil {
					return nil, err
				}
				partition, err := number(args[2], "PARTITION")
				if err != nil {
					return nil, err
				}
				count, err := number(args[3], "COUNT")
				if err != nil {
					return nil, err
				}
				return nil, c.DeleteSegments(wire.DeleteSegmentsRequest{Stream: ids[0], Topic: ids[1], Partition: partition, Count: count})
			}))
}
