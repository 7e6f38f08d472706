package metadata

import (
	"encoding/base64"
	"encoding/binary"

	"github.com/tinylib/msgp/msgp"
	"github.com/whippet-mq/whippet/libs/wire"
)

// The documented form (replica-wire §10) is nested arrays in field order. It has no place for what
// follows, so a snapshot that needs it carries an eighth element behind the seven documented ones:
//
//	Extension [6], [7] when nodes are registered, or [9] when one is drained or a partition has moved or is moving
//	 0 version u32 = 1
//	 1 assignments u64                    highest consensus_group_id ever logged
//	 2 deletes    [ [stream, topic, count] … ]                ascending; deletes of the slot mod 2048
//	 3 partitions [ [stream, topic, partition, tag, members bin] … ]   ascending; tag or members not empty
//	 4 replies    [ [slot, [ reply bin … ] ] … ]              ascending; replies before the latest, oldest first
//	 5 retired    [ [op, client u128, epoch, user, watermark, checksum u128, [ reply bin … ] ] … ]   ascending
//	 6 nodes      [ [id, uuid u128, role, epoch, zone, replica address, service address] … ]   ascending
//	 7 draining   [ id … ]                ascending
//	 8 moves      [ [stream, topic, partition, target bin, origin] … ]   ascending; target or origin not empty
//	   origin     nil, or [tag, members bin, op, identity u128, timestamp, settled bool]
//
// Everything is a function of the view: created_at is the prepare time of the last op, and statistics
// are zero because the partition replicas have them. Maps and lists are written in ascending order.
const (
	snapshotVersion   = 3
	snapshotFields    = 7
	writerRelease     = 11264 // 0.11.0
	extensionVersion  = 1
	extensionFields   = 6
	tokenHashSize     = wire.TokenHashSize
	statusActive      = "active"
	statusInactive    = "inactive"
	globalPermissions = 10
)

// EncodeSnapshot appends the view in the documented MessagePack form (replica-wire §10) to dst.
// Equal views give equal bytes.
func (v *View) EncodeSnapshot(dst []byte) []byte {
	extended := v.extended()
	fields := uint32(snapshotFields)
	if extended {
		fields++
	}
	dst = msgp.AppendArrayHeader(dst, fields)
	dst = msgp.AppendUint64(dst, snapshotVersion)
	dst = msgp.AppendUint64(dst, v.Time)
	dst = msgp.AppendUint64(dst, v.Op)
	dst = v.appendUsers(dst)
	dst = v.appendStreams(dst)
	dst = v.appendClientTable(dst)
	dst = msgp.AppendUint64(dst, writerRelease)
	if extended {
		dst = v.appendExtension(dst)
	}
	return dst
}

func (v *View) appendUsers(dst []byte) []byte {
	dst = msgp.AppendArrayHeader(dst, 3)
	dst = msgp.AppendArrayHeader(dst, uint32(v.users.Len()))
	for id, u := range v.users.All() {
		dst = msgp.AppendArrayHeader(dst, 2)
		dst = msgp.AppendUint64(dst, uint64(id))
		dst = u.append(dst)
	}
	dst = msgp.AppendArrayHeader(dst, uint32(v.users.Len()))
	for id, u := range v.users.All() {
		dst = msgp.AppendArrayHeader(dst, 2)
		dst = msgp.AppendUint64(dst, uint64(id))
		dst = msgp.AppendArrayHeader(dst, uint32(u.tokens.Len()))
		for name, t := range u.tokens.All() {
			dst = msgp.AppendArrayHeader(dst, 2)
			dst = msgp.AppendString(dst, name)
			dst = t.append(dst)
		}
	}
	const permissioner = 6 // indexes that readers rebuild from the users
	dst = msgp.AppendArrayHeader(dst, permissioner)
	for range permissioner {
		dst = msgp.AppendArrayHeader(dst, 0)
	}
	return dst
}

func (u *User) append(dst []byte) []byte {
	status := statusInactive
	if u.Active {
		status = statusActive
	}
	dst = msgp.AppendArrayHeader(dst, 7)
	dst = msgp.AppendUint64(dst, uint64(u.ID))
	dst = msgp.AppendString(dst, u.Name)
	dst = msgp.AppendString(dst, u.PasswordHash)
	dst = msgp.AppendString(dst, status)
	dst = msgp.AppendUint64(dst, u.CreatedAt)
	dst = appendPermissions(dst, u.Permissions)
	return msgp.AppendMapHeader(dst, 0)
}

func (t *Token) append(dst []byte) []byte {
	dst = msgp.AppendArrayHeader(dst, 4)
	dst = msgp.AppendUint64(dst, uint64(t.UserID))
	dst = msgp.AppendString(dst, t.Name)
	dst = msgp.AppendString(dst, t.Hash)
	if t.ExpiresAt == 0 {
		return msgp.AppendNil(dst)
	}
	return msgp.AppendUint64(dst, t.ExpiresAt)
}

func appendPermissions(dst []byte, p *wire.Permissions) []byte {
	if p == nil {
		return msgp.AppendNil(dst)
	}
	dst = msgp.AppendArrayHeader(dst, 2)
	dst = msgp.AppendArrayHeader(dst, globalPermissions)
	dst = appendBits(dst, uint16(p.Global), globalPermissions)
	if len(p.Streams) == 0 {
		return msgp.AppendNil(dst)
	}
	dst = msgp.AppendMapHeader(dst, uint32(len(p.Streams)))
	for i := range p.Streams {
		s := &p.Streams[i]
		dst = msgp.AppendUint64(dst, uint64(s.Stream))
		dst = msgp.AppendArrayHeader(dst, 7)
		dst = appendBits(dst, uint16(s.Rights), 6)
		if len(s.Topics) == 0 {
			dst = msgp.AppendNil(dst)
			continue
		}
		dst = msgp.AppendMapHeader(dst, uint32(len(s.Topics)))
		for _, t := range s.Topics {
			dst = msgp.AppendUint64(dst, uint64(t.Topic))
			dst = msgp.AppendArrayHeader(dst, 4)
			dst = appendBits(dst, uint16(t.Rights), 4)
		}
	}
	return dst
}

func appendBits(dst []byte, bits uint16, n int) []byte {
	for i := range n {
		dst = msgp.AppendBool(dst, bits>>i&1 == 1)
	}
	return dst
}

func (v *View) appendStreams(dst []byte) []byte {
	dst = msgp.AppendArrayHeader(dst, 2)
	dst = msgp.AppendArrayHeader(dst, uint32(v.streams.Len()))
	for id, s := range v.streams.All() {
		dst = msgp.AppendArrayHeader(dst, 2)
		dst = msgp.AppendUint64(dst, uint64(id))
		dst = msgp.AppendArrayHeader(dst, 6)
		dst = msgp.AppendUint64(dst, uint64(id))
		dst = msgp.AppendString(dst, s.Name)
		dst = msgp.AppendUint64(dst, s.CreatedAt)
		dst = appendNoStats(dst)
		dst = msgp.AppendArrayHeader(dst, uint32(s.topics.Len()))
		for id, t := range s.topics.All() {
			dst = msgp.AppendArrayHeader(dst, 2)
			dst = msgp.AppendUint64(dst, uint64(id))
			dst = t.append(dst)
		}
		dst = msgp.AppendMapHeader(dst, 0)
	}
	return msgp.AppendUint64(dst, v.Revision)
}

func appendNoStats(dst []byte) []byte {
	return append(msgp.AppendArrayHeader(dst, 3), 0, 0, 0)
}

func (t *Topic) append(dst []byte) []byte {
	dst = msgp.AppendArrayHeader(dst, 11)
	dst = msgp.AppendUint64(dst, uint64(t.ID))
	dst = msgp.AppendString(dst, t.Name)
	dst = msgp.AppendUint64(dst, t.CreatedAt)
	dst = msgp.AppendUint64(dst, t.Settings.MessageExpiry)
	dst = msgp.AppendString(dst, t.Settings.Compression.String())
	dst = msgp.AppendUint64(dst, t.Settings.MaxTopicSize)
	dst = appendNoStats(dst)
	dst = msgp.AppendArrayHeader(dst, uint32(t.partitions.Len()))
	for id, p := range t.partitions.All() {
		dst = msgp.AppendArrayHeader(dst, 6)
		dst = msgp.AppendUint64(dst, uint64(id))
		dst = msgp.AppendUint64(dst, p.Assignment)
		dst = msgp.AppendUint64(dst, p.CreatedAt)
		dst = msgp.AppendUint64(dst, p.CreatedRevision)
		dst = msgp.AppendUint64(dst, p.TrimTo)
		dst = msgp.AppendUint64(dst, p.PurgeGeneration)
	}
	dst = msgp.AppendArrayHeader(dst, uint32(t.groups.Len()))
	for id, g := range t.groups.All() {
		dst = msgp.AppendArrayHeader(dst, 2)
		dst = msgp.AppendUint64(dst, uint64(id))
		dst = g.append(dst)
	}
	dst = msgp.AppendUint64(dst, uint64(t.nextGroupID))
	return t.appendOptions(dst)
}

func (g *Group) append(dst []byte) []byte {
	dst = msgp.AppendArrayHeader(dst, 4)
	dst = msgp.AppendUint64(dst, uint64(g.Group))
	dst = msgp.AppendUint64(dst, g.Generation)
	dst = msgp.AppendString(dst, g.Name)
	dst = msgp.AppendArrayHeader(dst, uint32(len(g.Members)))
	for _, m := range g.Members {
		dst = msgp.AppendArrayHeader(dst, 2)
		dst = msgp.AppendUint64(dst, uint64(m.Slot))
		dst = msgp.AppendArrayHeader(dst, 4)
		dst = msgp.AppendUint64(dst, uint64(m.Slot))
		dst = appendU128(dst, m.Client)
		dst = msgp.AppendArrayHeader(dst, uint32(len(m.Partitions)))
		for _, p := range m.Partitions {
			dst = msgp.AppendUint64(dst, uint64(p))
		}
		dst = msgp.AppendArrayHeader(dst, uint32(len(m.Revoking)))
		for _, r := range m.Revoking {
			dst = msgp.AppendArrayHeader(dst, 3)
			dst = msgp.AppendUint64(dst, uint64(r.Partition))
			dst = msgp.AppendUint64(dst, uint64(r.Target))
			dst = msgp.AppendUint64(dst, r.CreatedAt)
		}
	}
	return dst
}

// appendOptions writes explicit and derived options as one map, ascending by key.
func (t *Topic) appendOptions(dst []byte) []byte {
	all := t.Derived(wire.GenerationSnapshot)
	if len(t.Explicit) > 0 {
		all = wire.MergeOptions(nil, all, t.Explicit)
	}
	count := uint32(0)
	for range all.All() {
		count++
	}
	dst = msgp.AppendMapHeader(dst, count)
	for o := range all.All() {
		_, explicit := t.Explicit.Get(string(o.Key))
		dst = appendField(dst, o.KeyKind, o.Key)
		dst = msgp.AppendArrayHeader(dst, 2)
		dst = appendField(dst, o.ValueKind, o.Value)
		dst = msgp.AppendBool(dst, explicit)
	}
	return dst
}

// kindNames are the names of value kinds 1 to 15.
var kindNames = [...]string{
	"", "raw", "string", "bool", "int8", "int16", "int32", "int64", "int128",
	"uint8", "uint16", "uint32", "uint64", "uint128", "float32", "float64",
}

func appendField(dst []byte, kind wire.ValueKind, value []byte) []byte {
	dst = msgp.AppendArrayHeader(dst, 2)
	dst = msgp.AppendString(dst, kindNames[kind])
	return msgp.AppendString(dst, base64.StdEncoding.EncodeToString(value))
}

// appendU128 writes a number as 16 bytes, big-endian: only here, frames have them little-endian.
func appendU128(dst []byte, u wire.U128) []byte {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], u.Hi)
	binary.BigEndian.PutUint64(b[8:], u.Lo)
	return msgp.AppendBytes(dst, b[:])
}

func (v *View) appendClientTable(dst []byte) []byte {
	dst = msgp.AppendArrayHeader(dst, 1)
	dst = msgp.AppendArrayHeader(dst, uint32(v.slots.Len()))
	for slot, id := range v.slots.All() {
		c := v.Client(id)
		dst = msgp.AppendArrayHeader(dst, 2)
		dst = msgp.AppendUint64(dst, uint64(slot))
		dst = msgp.AppendArrayHeader(dst, 6)
		dst = appendU128(dst, c.ID)
		dst = msgp.AppendUint64(dst, c.Epoch)
		dst = msgp.AppendUint64(dst, uint64(c.UserID))
		dst = msgp.AppendUint64(dst, c.Watermark)
		dst = appendU128(dst, c.WatermarkChecksum)
		dst = appendReply(dst, c.Replies[len(c.Replies)-1])
	}
	return dst
}

func appendReply(dst []byte, r *Committed) []byte {
	return msgp.AppendBytes(dst, r.Append(nil))
}

// extended reports whether the view holds anything the documented form has no place for.
func (v *View) extended() bool {
	if v.deletes.Len() > 0 || v.retired.Len() > 0 || v.nodes.Len() > 0 || v.assignments != v.highestAssignment() {
		return true
	}
	for _, c := range v.clients.All() {
		if len(c.Replies) > 1 {
			return true
		}
	}
	for range v.extendedPartitions() {
		return true
	}
	return false
}

func (v *View) highestAssignment() uint64 {
	highest := uint64(0)
	for _, s := range v.streams.All() {
		for _, t := range s.topics.All() {
			for _, p := range t.partitions.All() {
				highest = max(highest, p.Assignment)
			}
		}
	}
	return highest
}

// extendedPartitions yields the partitions with a tag or a member list.
func (v *View) extendedPartitions() func(yield func(*Topic, Partition) bool) {
	return func(yield func(*Topic, Partition) bool) {
		for _, s := range v.streams.All() {
			for _, t := range s.topics.All() {
				for _, p := range t.partitions.All() {
					if (p.Tag != 0 || p.Placed()) && !yield(t, p) {
						return
					}
				}
			}
		}
	}
}

func (v *View) appendExtension(dst []byte) []byte {
	fields := uint32(extensionFields)
	moves := v.hasMoves()
	if v.nodes.Len() > 0 || moves {
		fields++
	}
	if moves {
		fields += 2
	}
	dst = msgp.AppendArrayHeader(dst, fields)
	dst = msgp.AppendUint64(dst, extensionVersion)
	dst = msgp.AppendUint64(dst, v.assignments)
	dst = msgp.AppendArrayHeader(dst, uint32(v.deletes.Len()))
	for k, count := range v.deletes.All() {
		dst = msgp.AppendArrayHeader(dst, 3)
		dst = msgp.AppendUint64(dst, uint64(k.Stream))
		dst = msgp.AppendUint64(dst, uint64(k.Topic))
		dst = msgp.AppendUint64(dst, uint64(count))
	}
	dst = v.appendExtendedPartitions(dst)
	dst = v.appendRetired(v.appendOlderReplies(dst))
	if v.nodes.Len() > 0 || moves {
		dst = v.appendNodes(dst)
	}
	if moves {
		dst = v.appendMoves(v.appendDraining(dst))
	}
	return dst
}

func (v *View) appendNodes(dst []byte) []byte {
	dst = msgp.AppendArrayHeader(dst, uint32(v.nodes.Len()))
	for id, n := range v.nodes.All() {
		dst = msgp.AppendArrayHeader(dst, 7)
		dst = msgp.AppendUint64(dst, uint64(id))
		dst = appendU128(dst, n.UUID)
		dst = msgp.AppendUint64(dst, uint64(n.Role))
		dst = msgp.AppendUint64(dst, n.Epoch)
		dst = msgp.AppendString(dst, n.Zone)
		dst = msgp.AppendString(dst, n.Replica)
		dst = msgp.AppendString(dst, n.Service)
	}
	return dst
}

func (v *View) appendExtendedPartitions(dst []byte) []byte {
	count := uint32(0)
	for range v.extendedPartitions() {
		count++
	}
	dst = msgp.AppendArrayHeader(dst, count)
	for t, p := range v.extendedPartitions() {
		dst = msgp.AppendArrayHeader(dst, 5)
		dst = msgp.AppendUint64(dst, uint64(t.Stream))
		dst = msgp.AppendUint64(dst, uint64(t.ID))
		dst = msgp.AppendUint64(dst, uint64(p.ID))
		dst = msgp.AppendUint64(dst, uint64(p.Tag))
		dst = msgp.AppendBytes(dst, []byte(p.members))
	}
	return dst
}

func (v *View) appendOlderReplies(dst []byte) []byte {
	count := uint32(0)
	for _, c := range v.clients.All() {
		if len(c.Replies) > 1 {
			count++
		}
	}
	dst = msgp.AppendArrayHeader(dst, count)
	for slot, id := range v.slots.All() {
		c := v.Client(id)
		if len(c.Replies) > 1 {
			dst = msgp.AppendArrayHeader(dst, 2)
			dst = msgp.AppendUint64(dst, uint64(slot))
			dst = appendReplies(dst, c.Replies[:len(c.Replies)-1])
		}
	}
	return dst
}

func appendReplies(dst []byte, replies []*Committed) []byte {
	dst = msgp.AppendArrayHeader(dst, uint32(len(replies)))
	for _, r := range replies {
		dst = appendReply(dst, r)
	}
	return dst
}

func (v *View) appendRetired(dst []byte) []byte {
	dst = msgp.AppendArrayHeader(dst, uint32(v.retired.Len()))
	for op, c := range v.retired.All() {
		dst = msgp.AppendArrayHeader(dst, 7)
		dst = msgp.AppendUint64(dst, op)
		dst = appendU128(dst, c.ID)
		dst = msgp.AppendUint64(dst, c.Epoch)
		dst = msgp.AppendUint64(dst, uint64(c.UserID))
		dst = msgp.AppendUint64(dst, c.Watermark)
		dst = appendU128(dst, c.WatermarkChecksum)
		dst = appendReplies(dst, c.Replies)
	}
	return dst
}
