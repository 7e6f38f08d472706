package partitionreplica

import (
	"errors"
	"slices"
	"strings"

	"github.com/whippet-mq/whippet/libs/control"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/segment"
	"github.com/whippet-mq/whippet/libs/transfer"
	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// fetchesAtOnce bounds the states of partitions one process takes in at once (design-arguments 26).
const fetchesAtOnce = 2

// openTransfers lets the loops exchange states of partitions with the other nodes that host them, when a log no
// longer reaches back to what a member lacks; not in a process whose groups have one member.
func (r *Replica) openTransfers() {
	peers := r.config.Engine.Peers
	if peers == nil {
		return
	}
	r.transfers = transfer.NewExchange(transfer.Config{Cluster: r.config.Cluster, Peers: peers, Build: r.offer, Fetches: fetchesAtOnce})
	for _, e := range r.engines {
		e.Loop.TransferFrame = r.transfers.Frame
		e.Loop.Transfer = func(g *loop.Group, node uint8, above uint64) {
			if p := r.find(g.ID); p != nil {
				r.fetch(p, node, above)
			}
		}
	}
}

// mayHave reports whether a node may have the state of a partition: a member, or one of the successor that is or is to
// be.
func (r *Replica) mayHave(p *Partition, node uint8) bool {
	v := r.follower.View()
	if slices.Contains(p.group.Nodes(), node) {
		return true
	}
	if _, part, ok := v.PartitionByGroupID(p.id); ok && (slices.Contains(part.Target(), node) || slices.Contains(part.Members(), node)) {
		return true
	}
	_, part, ok := v.Successor(p.id)
	return ok && slices.Contains(part.Members(), node)
}

// offer is the state of a partition for another member of its group, or of its successor.
func (r *Replica) offer(group uint64, node uint8) (*transfer.Offer, uint8) {
	p := r.find(group)
	if p == nil || !r.mayHave(p, node) {
		return nil, 0
	}
	var cp *segment.Checkpoint
	var offsets, heirs, recent []byte
	o := &transfer.Offer{}
	p.engine.Wait(func() {
		if o.Head = p.group.Last(); o.Head.Op > 0 && p.fence.Load() == nil && r.find(group) == p {
			p.Settle()
			cp, offsets, heirs, recent = p.log.Checkpoint(), p.offsets.appendTo(nil), p.heirs, p.remembered()
		}
	})
	if cp == nil {
		return nil, 0 // nothing is committed, or what is can not be read
	}
	if err := cp.Write(); err != nil {
		r.log.Warn("state of a partition can not be offered", "group", group, "node", node, "error", err)
		return nil, 0
	}
	o.State = encodeImage(nil, &cp.State, offsets, 0, heirs, recent)
	for i := range cp.State.Segments {
		s := &cp.State.Segments[i]
		o.Files = append(o.Files, transfer.File{Base: s.Base, Len: s.Length, Hash: s.Hash, ReaderAt: cp.File(i)})
	}
	return o, uint8(slices.Index(p.group.Nodes(), r.config.Node))
}

// fetch brings the state of a partition from another member and has it installed. Called in a turn.
func (r *Replica) fetch(p *Partition, node uint8, above uint64) {
	r.log.Info("state of a partition is fetched from another member", "group", p.id, "node", node, "op", above)
	p.say(control.Event{Kind: control.TransferBegan, Node: &node})
	next := r.newPartition(p.engine, p.id)
	next.settleIn(p.home + 1)
	want := transfer.Want{
		Node: node, Group: p.id, Self: uint8(slices.Index(p.group.Nodes(), r.config.Node)), Above: above,
		Store: &stage{fs: r.fs, dir: next.dir},
	}
	r.transfers.Fetch(want, func(fetched *transfer.Fetched, err error) error {
		if err == nil {
			err = next.unpack(fetched.State, (&stage{dir: next.dir}).path())
		}
		if err != nil {
			r.metrics.transfersFailed.Inc()
			p.say(control.Event{Kind: control.TransferFailed, Node: &node, Reason: err.Error()})
			r.log.Warn("state of a partition could not be fetched", "group", p.id, "node", node, "error", err)
			_ = r.fs.RemoveAll(next.dir) // never part of anything
			p.engine.Do(func() { p.engine.Loop.TransferFailed(p.group) })
			return err
		}
		r.metrics.transfers.Inc()
		p.say(control.Event{Kind: control.TransferEnded, Node: &node})
		p.engine.Do(func() { r.install(p, next, fetched.Head) })
		return nil
	})
}

// install puts next, which was fetched, in the place of p. If nobody wants it any more, its files go: those of
// a partition that was deleted meanwhile at once, others with the next attempt. Called in a turn.
func (r *Replica) install(p, next *Partition, head wire.PrepareHeader) {
	taken := false
	p.engine.Install(p.group, head, func() error {
		err := p.replace(next)
		taken = err == nil
		return err
	})
	if taken {
		return
	}
	_ = next.log.Close()
	if r.find(p.id) == nil {
		p.engine.Background(func() error { return r.fs.RemoveAll(next.dir) }, func(err error) { r.fileFailed(p, err) })
	}
}

// stage receives the segments of a state in a directory of their own.
type stage struct {
	fs   vfs.FS
	dir  string
	made bool
}

func (s *stage) path() string { return s.dir + "/incoming" }

// Create implements transfer.Store.
func (s *stage) Create(base uint64) (transfer.Writer, error) {
	if !s.made {
		if err := s.fs.RemoveAll(s.dir); err != nil { // of an attempt that failed
			return nil, err
		}
		if err := s.fs.MkdirAll(s.path()); err != nil {
			return nil, err
		}
		s.made = true
	}
	f, err := s.fs.Create(s.path() + "/" + segment.FileName(base))
	if err != nil {
		return nil, err
	}
	return &staging{File: f}, nil
}

// staging is a segment on its way in.
type staging struct {
	vfs.File
	at int64
}

func (s *staging) Write(b []byte) (int, error) {
	n, err := s.WriteAt(b, s.at)
	s.at += int64(n)
	return n, err
}

// Close makes the segment durable.
func (s *staging) Close() error { return errors.Join(s.Sync(), s.File.Close()) }

// unpack makes a received state a log that could be this partition's: every batch of it is verified.
func (p *Partition) unpack(state []byte, received string) error {
	fs := p.replica.fs
	m, err := decodeImage(state)
	if err != nil {
		return err
	}
	st := m.segments
	life := segment.Dir(p.dir, st.Generation)
	if len(st.Segments) > 0 {
		if err := fs.Rename(received, life); err != nil {
			return err
		}
		for _, dir := range []string{life, p.dir, groupsDir} {
			if err := fs.SyncDir(dir); err != nil {
				return err
			}
		}
	}
	log, report, err := segment.Open(fs, p.dir, p.replica.options(p), st)
	switch {
	case err != nil:
		return err
	case len(report.Damage) > 0:
		return report.Damage[0]
	}
	p.log, p.offsets, p.recent, p.heirs = log, m.offsets, m.recent, m.heirs
	p.sealed.Store(len(m.heirs) > 0)
	return p.log.Settle()
}

// replace puts next, which has a newer state, in the place of p. Called in a turn. The files of p stay
// until a checkpoint knows those of next.
func (p *Partition) replace(next *Partition) error {
	r := p.replica
	if r.find(p.id) != p {
		return errors.New("partition: it was deleted while its state was fetched")
	}
	next.former = p.dir
	next.purged = max(p.purged, next.log.Generation())
	next.leading, next.view = p.leading, p.view
	p.group.Machine = next
	r.adopt(next, p.group)
	_ = p.log.Close() // readers of its views keep their files
	r.log.Info("state of a partition is installed", "group", p.id, "end", next.log.Next())
	return nil
}

// livesIn has the partition go on with the files of an incarnation before.
func (p *Partition) livesIn(old *Partition) {
	p.settleIn(old.home + 1<<homeBits)
}

// settleIn gives the partition its directory: each state that was installed has one of its own.
func (p *Partition) settleIn(home uint32) {
	p.home = home
	p.dir = homeDir(p.id, home)
}

// forgetFormer removes the files of the state before, once a checkpoint is durable that does not count
// them.
func (p *Partition) forgetFormer() {
	dir := p.former
	if dir == "" {
		return
	}
	p.former = ""
	r := p.replica
	p.engine.Background(func() error { return segment.Discard(r.fs, dir, trashDir, r.seconds()) }, func(err error) { r.fileFailed(p, err) })
}

// dropStrays removes what an interrupted transfer left: directories of hosted partitions that are not
// the ones their logs name.
func (r *Replica) dropStrays() {
	entries, err := r.fs.ReadDir(groupsDir)
	if err != nil {
		return
	}
	homes := map[string]string{} // by the part of the name that says which partition it is
	for _, p := range r.partitions {
		name := strings.TrimPrefix(p.dir, groupsDir+"/")
		key, _, _ := strings.Cut(name, ".")
		homes[key] = name
	}
	for _, e := range entries {
		key, _, _ := strings.Cut(e.Name, ".")
		if home, hosted := homes[key]; hosted && home != e.Name && !strings.HasSuffix(e.Name, ".fenced") {
			if err := segment.Discard(r.fs, groupsDir+"/"+e.Name, trashDir, r.seconds()); err != nil {
				r.log.Warn("a directory that is no partition's can not be removed", "name", e.Name, "error", err)
			}
		}
	}
}

var _ link.Service = (*Replica)(nil)
