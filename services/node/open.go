package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/service"
	"github.com/whippet-mq/whippet/libs/wire"
)

// openRoles opens the replicas on their logs and lets them serve. The session record of this life is
// written in between: it takes the evidence of the last one away, and nothing is promised before it.
func (n *node) openRoles() (err error) {
	if n.evidence, err = journal.LoadEvidence(n.fs, "."); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	for _, d := range n.evidence.Corrupt {
		n.log.Error("file is damaged", "file", d.File, "reason", d.Reason, "kept", d.Kept)
	}
	if n.evidence.Suspect {
		n.log.Warn("the machine restarted without a clean stop: what was not synced may be lost")
	}
	id, err := n.identity()
	if err != nil {
		return fmt.Errorf("identity: %w", err)
	}
	if n.cluster != nil {
		if err := n.join(&id); err != nil {
			return err
		}
	}
	if err := n.openReplicas(id); err != nil {
		return err
	}
	if n.life, err = n.evidence.Begin(n.fs, ".", id); err != nil {
		return fmt.Errorf("session record: %w", err)
	}
	if n.metadata != nil {
		n.metadata.Start()
	}
	if n.partition != nil {
		n.partition.Start()
	}
	if n.cluster != nil {
		n.meet()
	}
	return nil
}

// openReplicas opens the replicas of this process: the metadata before what stands on it.
func (n *node) openReplicas(id journal.Identity) (err error) {
	cluster := wire.ClusterID(n.config.Cluster.Name)
	if n.roles.Metadata {
		if n.metadata, err = n.openMetadata(cluster, id.Node); err != nil {
			return err
		}
		n.follower = n.metadata
	}
	if n.roles.Partition {
		if n.partition, err = n.openPartitions(cluster, id.Node); err != nil {
			return err
		}
	}
	switch {
	case n.metadata == nil:
	case n.cluster != nil:
		n.metadata.Partitions = n
	default:
		n.metadata.Partitions = n.partition
	}
	return nil
}

// stop ends the roles in the order of the request path, so that each finishes what it took, and
// closes the session once everything is synced.
func (n *node) stop() error {
	n.end()
	ctx, cancel := context.WithTimeout(context.Background(), drainLimit)
	defer cancel()
	if n.http != nil {
		_ = n.http.Stop(ctx) // clients see the end of their connections
	}
	if n.front != nil {
		_ = n.front.Stop(ctx)
	}
	if n.cluster != nil {
		n.leave()
	}
	var errs []error
	var ends []journal.LSN
	if n.metadata != nil {
		errs = append(errs, n.metadata.Stop(drainLimit))
		ends = append(ends, n.metadata.End())
	}
	if n.partition != nil {
		errs = append(errs, n.partition.Close(drainLimit))
		ends = append(ends, n.partition.Ends()...)
	}
	if n.cluster != nil {
		errs = append(errs, n.part())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	if n.life == nil {
		return nil
	}
	return n.life.End(ends)
}

// die ends the process: its log can not be trusted any more. The session record says so first, so
// that the next life does not take the log for whole.
func (n *node) die(status int, reason error) {
	if n.life != nil {
		if err := n.life.RaiseSuspect(); err != nil {
			reason = errors.Join(reason, err)
		}
	}
	select {
	case n.fatal <- service.WithExit(status, reason):
	default:
	}
}
