package node

import (
	"runtime"
	"time"

	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/wire"
	metadatareplica "github.com/whippet-mq/whippet/services/metadata-replica"
	partitionreplica "github.com/whippet-mq/whippet/services/partition-replica"
)

func (n *node) openMetadata(cluster wire.U128, owner [16]byte) (*metadatareplica.Replica, error) {
	c := n.config
	cleaner := time.Duration(0)
	if c.PersonalAccessToken.Cleaner.Enabled {
		cleaner = c.PersonalAccessToken.Cleaner.Interval
	}
	nodes, self := n.members()
	return metadatareplica.Open(metadatareplica.Config{
		Cluster:      cluster,
		Nodes:        nodes,
		Self:         self,
		Limits:       metadata.Limits{Clients: c.Metadata.ClientsTableMax},
		MaxTokens:    c.PersonalAccessToken.MaxTokensPerUser,
		TokenCleaner: cleaner,
		Rebalance:    c.ConsumerGroup.RebalancingTimeout,
		SessionClaim: c.Heartbeat.Interval,
		Lived:        n.evidence.HasSession,
		AcceptLoss:   c.AcceptMetadataLoss,
		Placement:    n.placement(),
		PerTopic:     c.Telemetry.PerTopic,
		Claims:       n.cluster != nil,
		Feed:         n.cluster != nil && !n.roles.Partition,
		Engine:       n.engine(owner, 0, c.Metadata.PrepareQueueDepth),
	}, metadatareplica.Deps{
		FS: n.fs, Root: n.makeRoot, Log: n.log.Named("metadata"), Registry: n.meter, Events: n.events, Fatal: n.die,
	})
}

// loops is how many event loops a new data directory gets.
func (n *node) loops() int {
	if n.config.Node.Loops > 0 {
		return n.config.Node.Loops
	}
	return max(1, runtime.GOMAXPROCS(0)/2)
}

func (n *node) openPartitions(cluster wire.U128, owner [16]byte) (*partitionreplica.Replica, error) {
	c := n.config
	cleaner := time.Duration(0)
	if c.DataMaintenance.Messages.CleanerEnabled {
		cleaner = c.DataMaintenance.Messages.Interval
	}
	var logged *metadata.View
	if n.metadata != nil {
		logged = n.metadata.Logged()
	}
	return partitionreplica.Open(partitionreplica.Config{
		Cluster:         cluster,
		Node:            n.self(),
		Roster:          n.roster(),
		Joined:          n.joinedAt(),
		Dial:            n.dial,
		Ask:             n.ask(),
		MoveRate:        int64(c.Partition.MoveRate),
		MovesAtOnce:     c.Partition.MovesAtOnce,
		Loops:           n.loops(),
		MaxPoll:         int(c.Limits.PollReply),
		MaxFrame:        int(c.MessageBus.MaxMessageSize),
		MaxOffsets:      maxOffsets,
		CleanerInterval: cleaner,
		TrashDelay:      c.Storage.TrashDelay,
		ScrubRate:       int64(c.Storage.ScrubRate),
		ScrubPause:      c.Storage.ScrubPause,
		LowWaterBytes:   uint64(c.Storage.LowWater),
		LowWaterPercent: 5,
		PerTopic:        c.Telemetry.PerTopic,
		Engine:          n.engine(owner, 1, c.Partition.PrepareQueueDepth),
	}, partitionreplica.Deps{
		FS: n.fs, Follower: n.follower, Logged: logged, Pool: n.pool, Log: n.log.Named("partition"),
		Registry: n.meter, Events: n.events, DiskLow: n.diskLow, Fatal: n.die,
	})
}

// showDisk shows on /readyz that sends are refused for lack of space. The process stays ready: reads,
// deletes and offset stores go on.
func (n *node) showDisk(low bool) {
	disk := n.disk.Load()
	switch {
	case disk == nil:
	case low:
		disk.Degrade("the disk is nearly full, sends are refused")
	default:
		disk.Hold()
	}
}

// maxOffsets is how many consumer offsets a partition keeps per kind (released-clients.md 3.3).
const maxOffsets = 4096

// queuedCalls is how many calls of a group wait for its pipeline: all producers of a busy partition, so that they
// have turns. Refused they would come again, not in order and at a price. Their bytes are bounded by the links.
const queuedCalls = 4096

func (n *node) engine(owner [16]byte, number uint32, pipeline int) loop.EngineOptions {
	c := n.config
	options := loop.EngineOptions{
		Owner:    journal.Owner{Node: owner, Loop: number},
		Suspect:  n.evidence.Suspect,
		Durable:  n.evidence.End,
		Limits:   loop.Limits{Pipeline: pipeline, Queue: queuedCalls},
		FileSize: int64(c.Journal.FileSize), Budget: int64(c.Journal.Budget), Reserve: int64(c.Storage.Reserve),
		Workers: 4, Stepped: n.stepped, Clock: n.clock,
	}
	if n.cluster != nil {
		options.Peers, options.Votes, options.Evidence, options.Echoes = n.peers, n.votes, n.evidence, n.echoes
	}
	return options
}
