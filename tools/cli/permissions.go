package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
)

// Names of rights, in the order of their bits.
var (
	globalRights = []string{
		"manage_servers", "read_servers", "manage_users", "read_users", "manage_streams",
		"read_streams", "manage_topics", "read_topics", "poll_messages", "send_messages",
	}
	streamRights = []string{"manage_stream", "read_stream", "manage_topics", "read_topics", "poll_messages", "send_messages"}
	topicRights  = []string{"manage_topic", "read_topic", "poll_messages", "send_messages"}
)

func (a *app) permissionCommands() *cobra.Command {
	return family("permissions", "Rights of users",
		a.onUser("get USER", "Show a user's rights", func(c *client.Client, id wire.Identifier) (any, error) {
			d, err := c.User(id)
			if err != nil {
				return nil, err
			}
			return record(permissionFields(d.Permissions)), nil
		}),
		a.setPermissions(),
		a.onUser("clear USER", "Take all rights from a user", func(c *client.Client, id wire.Identifier) (any, error) {
			return nil, c.UpdatePermissions(wire.UpdatePermissionsRequest{User: id})
		}),
	)
}

func (a *app) setPermissions() *cobra.Command {
	var global []string
	var streams, topics []string
	cmd := a.command("set USER", "Replace a user's rights", cobra.ExactArgs(1), func(c *client.Client, args []string) (any, error) {
		id, err := identifier(args[0])
		if err != nil {
			return nil, err
		}
		bits, err := rightBits(global, globalRights)
		if err != nil {
			return nil, err
		}
		p := wire.Permissions{Global: wire.GlobalRights(bits)}
		for _, text := range streams {
			if err := grantStream(c, &p, text); err != nil {
				return nil, err
			}
		}
		for _, text := range topics {
			if err := grantTopic(c, &p, text); err != nil {
				return nil, err
			}
		}
		return nil, c.UpdatePermissions(wire.UpdatePermissionsRequest{User: id, Permissions: p.Append(nil)})
	})
	cmd.Long = "Replaces all rights of a user.\n\nEverywhere: " + strings.Join(globalRights, ", ") + "; all.\nOn a stream: " +
		strings.Join(streamRights, ", ") + "; all.\nOn a topic: " + strings.Join(topicRights, ", ") + "; all."
	cmd.Example = "  whippet permissions set ann --global read_streams --stream orders=poll_messages,send_messages --topic orders/new=all"
	cmd.Flags().StringSliceVar(&global, "global", nil, "rights on everything")
	cmd.Flags().StringArrayVar(&streams, "stream", nil, "STREAM=RIGHT,RIGHT…")
	cmd.Flags().StringArrayVar(&topics, "topic", nil, "STREAM/TOPIC=RIGHT,RIGHT…")
	return cmd
}

func rightBits(names, known []string) (bits uint16, err error) {
	for _, name := range names {
		i := slices.Index(known, name)
		switch {
		case name == "all":
			bits |= 1<<len(known) - 1
		case i < 0:
			return 0, usageError{fmt.Errorf("right %q: want %s or all", name, strings.Join(known, ", "))}
		default:
			bits |= 1 << i
		}
	}
	return bits, nil
}

func rightNames(bits uint16, known []string) string {
	var out []string
	for i, name := range known {
		if bits>>i&1 != 0 {
			out = append(out, name)
		}
	}
	return strings.Join(out, ", ")
}

// streamEntry finds or adds the entry of a stream. Rights are kept by number, so names are looked up.
func streamEntry(c *client.Client, p *wire.Permissions, text string) (*wire.StreamPermissions, error) {
	id, err := identifier(text)
	if err != nil {
		return nil, err
	}
	d, err := c.Stream(id)
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", text, err)
	}
	for i := range p.Streams {
		if p.Streams[i].Stream == d.ID {
			return &p.Streams[i], nil
		}
	}
	p.Streams = append(p.Streams, wire.StreamPermissions{Stream: d.ID})
	return &p.Streams[len(p.Streams)-1], nil
}

func grantStream(c *client.Client, p *wire.Permissions, text string) error {
	target, rights, ok := strings.Cut(text, "=")
	if !ok {
		return usageError{fmt.Errorf("--stream %q: want STREAM=RIGHT,RIGHT", text)}
	}
	bits, err := rightBits(strings.Split(rights, ","), streamRights)
	if err != nil {
		return err
	}
	entry, err := streamEntry(c, p, target)
	if err == nil {
		entry.Rights |= wire.StreamRights(bits)
	}
	return err
}

func grantTopic(c *client.Client, p *wire.Permissions, text string) error {
	target, rights, ok := strings.Cut(text, "=")
	stream, topic, both := strings.Cut(target, "/")
	if !ok || !both {
		return usageError{fmt.Errorf("--topic %q: want STREAM/TOPIC=RIGHT,RIGHT", text)}
	}
	bits, err := rightBits(strings.Split(rights, ","), topicRights)
	if err != nil {
		return err
	}
	ids, err := identifiers(stream, topic)
	if err != nil {
		return err
	}
	entry, err := streamEntry(c, p, stream)
	if err != nil {
		return err
	}
	d, err := c.Topic(ids[0], ids[1])
	if err != nil {
		return fmt.Errorf("topic %s: %w", target, err)
	}
	entry.Topics = append(entry.Topics, wire.TopicPermissions{Topic: d.ID, Rights: wire.TopicRights(bits)})
	return nil
}

func permissionFields(p *wire.Permissions) []field {
	if p == nil {
		return []field{{"global", ""}, {"on", list{}}}
	}
	on := list{}
	for _, s := range p.Streams {
		on = append(on, record{{"stream", s.Stream}, {"topic", "all"}, {"rights", rightNames(uint16(s.Rights), streamRights)}})
		for _, t := range s.Topics {
			on = append(on, record{{"stream", s.Stream}, {"topic", fmt.Sprint(t.Topic)}, {"rights", rightNames(uint16(t.Rights), topicRights)}})
		}
	}
	return []field{{"global", rightNames(uint16(p.Global), globalRights)}, {"on", on}}
}
