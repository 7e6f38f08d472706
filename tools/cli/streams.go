package cli

import (
	"github.com/spf13/cobra"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
)

func (a *app) streamCommands() *cobra.Command {
	return family("stream", "Streams",
		a.command("list", "List all streams", cobra.NoArgs, func(c *client.Client, _ []string) (any, error) {
			streams, err := c.Streams()
			var out list
			for _, s := range streams {
				out = append(out, streamRecord(s))
			}
			return out, err
		}),
		a.command("get STREAM", "Show a stream and its topics", cobra.ExactArgs(1), func(c *client.Client, args []string) (any, error) {
			id, err := identifier(args[0])
			if err != nil {
				return nil, err
			}
			d, err := c.Stream(id)
			if err != nil {
				return nil, err
			}
			topics := list{}
			for _, t := range d.Topics {
				topics = append(topics, topicRecord(t))
			}
			return append(streamRecord(d.StreamRecord), field{"topics", topics}), nil
		}),
		a.command("create NAME", "Make a stream", cobra.ExactArgs(1), func(c *client.Client, args []string) (any, error) {
			if err := newName(args[0]); err != nil {
				return nil, err
			}
			s, err := c.CreateStream(args[0])
			return streamRecord(s), err
		}),
		a.command("rename STREAM NAME", "Give a stream another name", cobra.ExactArgs(2), func(c *client.Client, args []string) (any, error) {
			id, err := identifier(args[0])
			if err != nil {
				return nil, err
			}
			return nil, c.UpdateStream(id, args[1])
		}),
		a.onStream("delete STREAM", "Delete a stream and everything in it", (*client.Client).DeleteStream),
		a.onStream("purge STREAM", "Delete all messages and stored offsets of a stream", (*client.Client).PurgeStream),
	)
}

func (a *app) onStream(use, short string, do func(*client.Client, wire.Identifier) error) *cobra.Command {
	return a.command(use, short, cobra.ExactArgs(1), func(c *client.Client, args []string) (any, error) {
		id, err := identifier(args[0])
		if err != nil {
			return nil, err
		}
		return nil, do(c, id)
	})
}

func streamRecord(s wire.StreamRecord) record {
	return record{
		{"id", s.ID}, {"name", s.Name}, {"topics_count", s.TopicsCount}, {"messages", s.MessagesCount},
		{"size", bytesCount(s.SizeBytes)}, {"created_at", instant(s.CreatedAt)},
	}
}
