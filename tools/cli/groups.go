package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
)

func (a *app) groupCommands() *cobra.Command {
	return family("group", "Consumer groups (consume --group joins one)",
		a.onTopic("list STREAM TOPIC", "List a topic's groups", func(c *client.Client, s, t wire.Identifier) (any, error) {
			groups, err := c.Groups(s, t)
			var out list
			for _, g := range groups {
				out = append(out, groupRecord(g))
			}
			return out, err
		}),
		a.onGroup("get STREAM TOPIC GROUP", "Show a group and its members", func(c *client.Client, t wire.GroupTarget) (any, error) {
			d, err := c.Group(t)
			if err != nil {
				return nil, err
			}
			return groupDetails(d), nil
		}),
		a.command("create STREAM TOPIC NAME", "Make a group", cobra.ExactArgs(3), func(c *client.Client, args []string) (any, error) {
			ids, err := identifiers(args[0], args[1])
			if err != nil {
				return nil, err
			}
			d, err := c.CreateGroup(wire.CreateGroupRequest{Stream: ids[0], Topic: ids[1], Name: []byte(args[2])})
			if err != nil {
				return nil, err
			}
			return groupDetails(d), nil
		}),
		a.onGroup("delete STREAM TOPIC GROUP", "Delete a group and its offsets", func(c *client.Client, t wire.GroupTarget) (any, error) {
			return nil, c.DeleteGroup(t)
		}),
	)
}

func (a *app) onGroup(use, short string, do func(*client.Client, wire.GroupTarget) (any, error)) *cobra.Command {
	return a.command(use, short, cobra.ExactArgs(3), func(c *client.Client, args []string) (any, error) {
		ids, err := identifiers(args...)
		if err != nil {
			return nil, err
		}
		return do(c, wire.GroupTarget{Stream: ids[0], Topic: ids[1], Group: ids[2]})
	})
}

func groupRecord(g wire.GroupRecord) record {
	return record{{"id", g.ID}, {"name", g.Name}, {"members_count", g.MembersCount}, {"partitions_count", g.PartitionsCount}}
}

func groupDetails(d wire.GroupDetails) record {
	members := list{}
	for _, m := range d.Members {
		members = append(members, record{{"id", m.ID}, {"partitions", m.Partitions}})
	}
	return append(groupRecord(d.GroupRecord), field{"members", members})
}

// offsetFlags name whose offset is meant.
type offsetFlags struct{ consumer, group string }

func (o *offsetFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.consumer, "consumer", "", "the consumer's name or number")
	cmd.Flags().StringVar(&o.group, "group", "", "or the group's")
}

func (o *offsetFlags) owner() (wire.Consumer, error) {
	if (o.consumer == "") == (o.group == "") {
		return wire.Consumer{}, usageError{fmt.Errorf("give either --consumer or --group")}
	}
	kind, text := wire.ConsumerSingle, o.consumer
	if o.group != "" {
		kind, text = wire.ConsumerGroup, o.group
	}
	id, err := identifier(text)
	return wire.Consumer{Kind: kind, ID: id}, err
}

func (a *app) offsetCommands() *cobra.Command {
	return family("offset", "Stored offsets of consumers and groups",
		a.onOffset("get STREAM TOPIC PARTITION", "Show a stored offset", 3, func(c *client.Client, t wire.OffsetTarget, _ []string) (any, error) {
			o, err := c.Offset(t)
			if err != nil {
				return nil, err
			}
			lag := o.CurrentOffset - min(o.CurrentOffset, o.StoredOffset)
			return record{{"partition", o.Partition}, {"stored_offset", o.StoredOffset}, {"current_offset", o.CurrentOffset}, {"lag", lag}}, nil
		}),
		a.onOffset("set STREAM TOPIC PARTITION OFFSET", "Store an offset", 4, func(c *client.Client, t wire.OffsetTarget, args []string) (any, error) {
			offset, err := longNumber(args[3], "OFFSET")
			if err != nil {
				return nil, err
			}
			return nil, c.StoreOffset(wire.StoreOffsetRequest{OffsetTarget: t, Offset: offset, Ack: wire.AckQuorum})
		}),
		a.onOffset("delete STREAM TOPIC PARTITION", "Forget a stored offset", 3, func(c *client.Client, t wire.OffsetTarget, _ []string) (any, error) {
			return nil, c.DeleteOffset(wire.DeleteOffsetRequest{OffsetTarget: t, Ack: wire.AckQuorum})
		}),
	)
}

func (a *app) onOffset(use, short string, args int, do func(*client.Client, wire.OffsetTarget, []string) (any, error)) *cobra.Command {
	var o offsetFlags
	cmd := a.command(use, short, cobra.ExactArgs(args), func(c *client.Client, args []string) (any, error) {
		ids, err := identifiers(args[0], args[1])
		if err != nil {
			return nil, err
		}
		partition, err := number(args[2], "PARTITION")
		if err != nil {
			return nil, err
		}
		owner, err := o.owner()
		if err != nil {
			return nil, err
		}
		return do(c, wire.OffsetTarget{Consumer: owner, Stream: ids[0], Topic: ids[1], Partition: wire.SelectPartition(partition)}, args)
	})
	o.add(cmd)
	return cmd
}
