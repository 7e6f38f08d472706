package metadata

import (
	"slices"

	"github.com/whippet-mq/whippet/libs/wire"
)

func (v *View) readClientTable(d *decoder) {
	if d.null() {
		return
	}
	d.fields(1, "client table")
	for range d.list("client table") {
		d.fields(2, "client slot")
		slot := uint32(d.bounded(maxClients-1, "client slot"))
		d.fields(6, "client")
		c := &Client{
			Slot: slot, ID: d.u128("client id"), Epoch: d.u64("client epoch"), UserID: d.u32("client user"),
			Watermark: d.u64("client watermark"), WatermarkChecksum: d.u128("client checksum"),
		}
		reply := readReply(d, c.ID)
		_, taken := v.slots.Get(slot)
		d.check(!taken && !c.ID.IsZero() && v.Client(c.ID) == nil, "client")
		if d.failed {
			return
		}
		c.Replies = []*Committed{reply}
		v.setClient(c)
	}
}

// readReply reads a reply frame to client.
func readReply(d *decoder, client wire.U128) *Committed {
	frame := d.blob("reply")
	r := &Committed{}
	err := r.Header.Decode(frame)
	d.check(err == nil && uint64(r.Header.Size) == uint64(len(frame)) && r.Header.Client == client, "reply")
	if d.failed {
		return r
	}
	r.Body = slices.Clone(frame[wire.HeaderSize:])
	return r
}

func readReplies(d *decoder, client wire.U128, limit int) []*Committed {
	var replies []*Committed
	count := d.list("replies")
	d.check(count <= limit, "replies")
	for range count {
		r := readReply(d, client)
		n := len(replies)
		d.check(n == 0 || d.failed || replies[n-1].Header.Op < r.Header.Op, "order of replies")
		if d.failed {
			return nil
		}
		replies = append(replies, r)
	}
	return replies
}

func (v *View) readExtension(d *decoder) {
	extra := d.record(extensionFields, "extension")
	d.check(d.u64("extension version") == extensionVersion, "extension version")
	v.assignments = max(v.assignments, d.u64("assignments"))
	for range d.list("deletes") {
		d.fields(3, "deletes")
		k := TopicKey{uint32(d.bounded(wire.MaxStreams-1, "deletes")), uint32(d.bounded(wire.MaxTopics-1, "deletes"))}
		v.deletes = v.deletes.set(k, uint16(d.bounded(wire.MaxTag, "deletes")))
		if d.failed {
			return
		}
	}
	v.readExtendedPartitions(d)
	v.readOlderReplies(d)
	v.readRetired(d)
	if extra > 0 {
		v.readNodes(d)
	}
	if extra > 2 {
		v.readDraining(d)
		v.readMoves(d)
		extra -= 2
	}
	d.skip(extra-1, "extension")
}

func (v *View) readNodes(d *decoder) {
	for range d.list("nodes") {
		d.fields(7, "node")
		n := &Node{
			ID: uint8(d.bounded(uint64(wire.NoNode)-1, "node id")), UUID: d.u128("node uuid"), Role: wire.Role(d.bounded(3, "node role")),
			Epoch: d.u64("node epoch"), Zone: d.text("node zone"), Replica: d.text("node address"), Service: d.text("node address"),
		}
		d.check(n.Role != 0 && v.Node(n.ID) == nil && v.NodeByUUID(n.UUID) == nil && !n.UUID.IsZero(), "node")
		d.check(len(n.Zone) < 256 && len(n.Replica) < 256 && len(n.Service) < 256, "node")
		if d.failed {
			return
		}
		v.nodes = v.nodes.set(n.ID, n)
	}
}

// readExtendedPartitions gives partitions their tags and members. Entries come topic by topic.
func (v *View) readExtendedPartitions(d *decoder) {
	var t *Topic
	for range d.list("partition extensions") {
		d.fields(5, "partition extension")
		k := TopicKey{d.u32("partition extension"), d.u32("partition extension")}
		id, tag := d.u32("partition extension"), uint16(d.bounded(wire.MaxTag, "partition tag"))
		members := d.blob("partition members")
		if t == nil || t.Key() != k {
			if t = v.TopicByKey(k); t == nil {
				d.fail("partition extension")
				return
			}
		}
		p, ok := t.Partition(id)
		d.check(ok && len(members) <= 255, "partition extension")
		if d.failed {
			return
		}
		p.Tag, p.members = tag, string(members)
		t.partitions = t.partitions.set(id, p) // nobody else sees the topic yet
	}
}

func (v *View) readOlderReplies(d *decoder) {
	for range d.list("older replies") {
		d.fields(2, "older replies")
		id, ok := v.slots.Get(d.u32("older replies"))
		if !ok || d.failed {
			d.fail("slot of older replies")
			return
		}
		c := *v.Client(id)
		older := readReplies(d, id, RepliesPerClient-1)
		d.check(len(c.Replies) == 1 && len(older) > 0, "older replies")
		if d.failed {
			return
		}
		d.check(older[len(older)-1].Header.Op < c.Replies[0].Header.Op, "order of replies")
		c.Replies = append(older, c.Replies...)
		v.setClient(&c)
	}
}

func (v *View) readRetired(d *decoder) {
	for range d.list("retired clients") {
		d.fields(7, "retired client")
		op := d.u64("retired client")
		c := &Client{
			ID: d.u128("retired client"), Epoch: d.u64("retired client"), UserID: d.u32("retired client"),
			Watermark: d.u64("retired client"), WatermarkChecksum: d.u128("retired client"),
		}
		c.Replies = readReplies(d, c.ID, RepliesPerClient)
		_, taken := v.retired.Get(op)
		_, known := v.retiredAt.Get(c.ID)
		d.check(!taken && !known && len(c.Replies) > 0 && v.Client(c.ID) == nil, "retired client")
		if d.failed {
			return
		}
		v.retired = v.retired.set(op, c)
		v.retiredAt = v.retiredAt.set(c.ID, op)
	}
}
