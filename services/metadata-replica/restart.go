package metadatareplica

import (
	"fmt"

	"github.com/whippet-mq/whippet/libs/control"
	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/metadata"
)

// birth starts an empty metadata group. The root user stands outside the log (every node makes its
// own), so a first checkpoint keeps it before anything is served.
func (r *Replica) birth(spec loop.Spec, rec *journal.Recovered, deps Deps) error {
	root, err := deps.Root()
	if err != nil {
		return err
	}
	r.current = metadata.New(root, r.config.Limits)
	if err := r.replay(spec, &journal.GroupLog{Group: spec.ID}, rec); err != nil {
		return err
	}
	return r.engine.Checkpoint()
}

// restore continues from the last checkpoint and the log behind it. A log that lost acknowledged
// ops is served as far as it goes; changes are refused, because they would be built on a gap.
func (r *Replica) restore(spec loop.Spec, log *journal.GroupLog, rec *journal.Recovered, deps Deps) error {
	if log.Image == nil {
		return r.withoutImage(spec, log, rec, deps, errNoCheckpoint)
	}
	v, err := metadata.DecodeSnapshot(log.Image.State, r.config.Limits)
	if err != nil {
		return r.withoutImage(spec, log, rec, deps, err)
	}
	r.current = v
	return r.replay(spec, log, rec)
}

// replay applies the log behind the checkpoint.
func (r *Replica) replay(spec loop.Spec, log *journal.GroupLog, rec *journal.Recovered) error {
	r.group = r.engine.Host(spec, r, log)
	var lost error
	err := r.engine.Replay(rec, func(_ *loop.Group, err error) { lost = err })
	switch {
	case err != nil || lost == nil || spec.Members > 1 && r.unread == nil:
	case r.config.AcceptLoss:
		return r.accept(lost)
	default:
		r.damage(lost)
	}
	if err == nil && len(log.Faults) > 0 && spec.Members == 1 {
		err = r.engine.Checkpoint() // logins of this life come after the gap and must not hide it from the next
	}
	return err
}

var errNoCheckpoint = fmt.Errorf("metadata: no readable checkpoint")

// withoutImage serves what is left when the checkpoint can not be read: the root user alone, and
// no changes.
func (r *Replica) withoutImage(spec loop.Spec, log *journal.GroupLog, rec *journal.Recovered, deps Deps, cause error) error {
	root, err := deps.Root()
	if err != nil {
		return err
	}
	r.current = metadata.New(root, r.config.Limits)
	if spec.Members > 1 {
		r.log.Warn("metadata is not readable: it comes from the other members", "error", cause)
		log.Image = nil
		return r.replay(spec, log, rec)
	}
	if r.unread = cause; !r.config.AcceptLoss {
		r.damage(cause)
	}
	return r.replay(spec, log, rec)
}

// accept goes on from what is left, as the operator asked: it is the whole metadata from now on.
func (r *Replica) accept(lost error) error {
	r.log.Warn("loss of metadata is accepted: what is left counts as the whole", "op", r.current.Op, "error", lost)
	r.unread = nil
	if err := r.engine.Accept(r.group); err != nil {
		return err
	}
	return r.engine.Checkpoint()
}

func (r *Replica) damage(err error) {
	if r.damaged != nil {
		return
	}
	r.damaged = err
	r.metrics.damaged.Set(1)
	r.say(control.Event{Kind: control.Damaged, Reason: err.Error()})
	r.log.Error("metadata log is damaged: it is served as far as it goes, changes are refused, files are kept", "error", err)
}
