package httpapi

import (
	"github.com/whippet-mq/whippet/libs/wire"
)

type groupJSON struct {
	ID              uint32 `json:"id"`
	Name            string `json:"name"`
	PartitionsCount uint32 `json:"partitions_count"`
	MembersCount    uint32 `json:"members_count"`
}

type groupDetailsJSON struct {
	ID              uint32       `json:"id"`
	Name            string       `json:"name"`
	PartitionsCount uint32       `json:"partitions_count"`
	MembersCount    uint32       `json:"members_count"`
	Members         []memberJSON `json:"members"`
}

type memberJSON struct {
	ID              uint32   `json:"id"`
	PartitionsCount uint32   `json:"partitions_count"`
	Partitions      []uint32 `json:"partitions"`
}

// getGroups serves GET …/consumer-groups.
func getGroups(c *call) error {
	target, err := c.topic()
	if err == nil {
		err = c.plain()
	}
	if err != nil {
		return err
	}
	return c.read(wire.CmdGetGroups, target.Append(nil), func(b []byte) error {
		groups, err := wire.DecodeGroups(b)
		if err != nil {
			return err
		}
		out := make([]groupJSON, len(groups))
		for i, g := range groups {
			out[i] = groupJSON{g.ID, g.Name, g.PartitionsCount, g.MembersCount}
		}
		return c.json(out)
	})
}

// group reads the first three segments as a stream, a topic and a group.
func (c *call) group() (t wire.GroupTarget, err error) {
	topic, err := c.topic()
	t.Stream, t.Topic = topic.Stream, topic.Topic
	if err == nil {
		t.Group, err = c.id(2)
	}
	return t, err
}

// getGroup serves GET …/consumer-groups/{group}.
func getGroup(c *call) error {
	target, err := c.group()
	if err == nil {
		err = c.plain()
	}
	if err != nil {
		return err
	}
	return c.read(wire.CmdGetGroup, target.Append(nil), func(b []byte) error {
		if len(b) == 0 {
			return errMissing
		}
		return c.groupDetails(b)
	})
}

func (c *call) groupDetails(b []byte) error {
	g, err := wire.DecodeGroupDetails(b)
	if err != nil {
		return err
	}
	members := make([]memberJSON, len(g.Members))
	for i, m := range g.Members {
		members[i] = memberJSON{m.ID, uint32(len(m.Partitions)), append([]uint32{}, m.Partitions...)}
	}
	return c.json(groupDetailsJSON{g.ID, g.Name, g.PartitionsCount, g.MembersCount, members})
}

// createGroup serves POST …/consumer-groups.
func createGroup(c *call) error {
	target, err := c.topic()
	if err != nil {
		return err
	}
	name, err := c.one("name")
	if err != nil {
		return err
	}
	if !nameFits(name) {
		return refusal(wire.CodeInvalidConsumerGroupName)
	}
	q := wire.CreateGroupRequest{Stream: target.Stream, Topic: target.Topic, Name: name}
	return c.write(wire.OpCreateGroup, q.Append(nil), c.groupDetails)
}

// deleteGroup serves DELETE …/consumer-groups/{group}.
func deleteGroup(c *call) error {
	target, err := c.group()
	if err != nil {
		return err
	}
	return c.write(wire.OpDeleteGroup, target.Append(nil), c.noContent)
}
