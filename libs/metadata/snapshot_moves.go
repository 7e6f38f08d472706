package metadata

import (
	"github.com/tinylib/msgp/msgp"

	"github.com/whippet-mq/whippet/libs/wire"
)

// hasMoves reports whether a node is drained, or a partition has moved or is moving.
func (v *View) hasMoves() bool {
	for _, n := range v.nodes.All() {
		if n.Draining {
			return true
		}
	}
	for range v.movedPartitions() {
		return true
	}
	return false
}

// movedPartitions yields the partitions that have moved or are moving.
func (v *View) movedPartitions() func(yield func(*Topic, Partition) bool) {
	return func(yield func(*Topic, Partition) bool) {
		for t, p := range v.extendedPartitions() {
			if (p.Moving() || p.Origin != nil) && !yield(t, p) {
				return
			}
		}
	}
}

func (v *View) appendDraining(dst []byte) []byte {
	count := uint32(0)
	for _, n := range v.nodes.All() {
		if n.Draining {
			count++
		}
	}
	dst = msgp.AppendArrayHeader(dst, count)
	for id, n := range v.nodes.All() {
		if n.Draining {
			dst = msgp.AppendUint64(dst, uint64(id))
		}
	}
	return dst
}

func (v *View) appendMoves(dst []byte) []byte {
	count := uint32(0)
	for range v.movedPartitions() {
		count++
	}
	dst = msgp.AppendArrayHeader(dst, count)
	for t, p := range v.movedPartitions() {
		dst = msgp.AppendArrayHeader(dst, 5)
		dst = msgp.AppendUint64(dst, uint64(t.Stream))
		dst = msgp.AppendUint64(dst, uint64(t.ID))
		dst = msgp.AppendUint64(dst, uint64(p.ID))
		dst = msgp.AppendBytes(dst, []byte(p.target))
		o := p.Origin
		if o == nil {
			dst = msgp.AppendNil(dst)
			continue
		}
		dst = msgp.AppendArrayHeader(dst, 6)
		dst = msgp.AppendUint64(dst, uint64(o.Tag))
		dst = msgp.AppendBytes(dst, []byte(o.members))
		dst = msgp.AppendUint64(dst, o.Seal.Op)
		dst = appendU128(dst, o.Seal.Identity)
		dst = msgp.AppendUint64(dst, o.Seal.Timestamp)
		dst = msgp.AppendBool(dst, o.Settled)
	}
	return dst
}

func (v *View) readDraining(d *decoder) {
	for range d.list("draining nodes") {
		n := v.Node(uint8(d.bounded(uint64(wire.NoNode)-1, "draining node")))
		d.check(n != nil && !n.Draining, "draining node")
		if d.failed {
			return
		}
		n.Draining = true // nobody else sees the node yet
	}
}

func (v *View) readMoves(d *decoder) {
	for range d.list("moves") {
		d.fields(5, "move")
		k := TopicKey{d.u32("move"), d.u32("move")}
		id, target := d.u32("move"), d.blob("move target")
		origin := readOrigin(d)
		t := v.TopicByKey(k)
		d.check(t != nil && (len(target) > 0 || origin != nil), "move")
		if d.failed {
			return
		}
		p, ok := t.Partition(id)
		d.check(ok && p.Placed() && (len(target) == 0 || len(target) == len(p.members)), "move")
		if d.failed {
			return
		}
		p.target, p.Origin = string(target), origin
		t.partitions = t.partitions.set(id, p) // nobody else sees the topic yet
	}
}

func readOrigin(d *decoder) *Origin {
	if d.null() {
		return nil
	}
	d.fields(6, "origin")
	o := &Origin{Tag: uint16(d.bounded(wire.MaxTag, "origin tag"))}
	members := d.blob("origin members")
	o.members = string(members)
	o.Seal = wire.LogSeal{Op: d.u64("seal op"), Identity: d.u128("seal identity"), Timestamp: d.u64("seal time")}
	o.Settled = d.flag("origin settled")
	d.check(len(members) > 0 && len(members) <= 255 && o.Seal.Op > 0, "origin")
	return o
}
