package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"lukechampine.com/blake3"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/service"
	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
	frontdoor "github.com/whippet-mq/whippet/services/front-door"
	metadatareplica "github.com/whippet-mq/whippet/services/metadata-replica"
	partitionreplica "github.com/whippet-mq/whippet/services/partition-replica"
)

// drainLimit is how long each role may take to finish what it has admitted.
const drainLimit = 1500 * time.Millisecond

// node is one process with all three roles.
type node struct {
	config    *service.Config
	runtime   *service.Runtime
	fs        vfs.FS
	pool      *buffer.Pool
	fatal     chan error
	metadata  *metadatareplica.Replica
	partition *partitionreplica.Replica
	front     *frontdoor.Server
}

// serve starts the roles from the log up, works until ctx is done and stops them from the sockets
// down.
func serve(ctx context.Context, r *service.Runtime) error {
	n := &node{config: r.Config, runtime: r, fatal: make(chan error, 1)}
	data, err := n.open()
	if err != nil {
		return err
	}
	defer func() { _ = data.Close() }()
	if err := n.start(); err != nil {
		return err
	}
	if err := r.Ready(service.Bound{TCP: n.front.Addr().String()}); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return n.stop()
	case err := <-n.fatal:
		return err
	}
}

// start opens every role on its log, then lets them serve.
func (n *node) start() (err error) {
	cluster := clusterID(n.config.Cluster.Name)
	if n.metadata, err = n.openMetadata(cluster); err != nil {
		return err
	}
	if n.partition, err = n.openPartitions(cluster); err != nil {
		return err
	}
	n.metadata.Partitions = n.partition
	if n.front, err = n.openFront(cluster); err != nil {
		return service.WithExit(service.ExitConfig, err)
	}
	n.metadata.Start()
	n.partition.Start()
	if err := n.metadata.Damaged(); err != nil {
		n.runtime.Ops.Condition("metadata").Degrade(err.Error())
	}
	return n.front.Start()
}

// stop ends the roles in the order of the request path, so that each finishes what it took.
func (n *node) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), drainLimit)
	defer cancel()
	first := n.front.Stop(ctx)
	if err := n.partition.Close(drainLimit); err != nil {
		first = err
	}
	if err := n.metadata.Stop(drainLimit); err != nil {
		first = err
	}
	if first != nil {
		return fmt.Errorf("stop: %w", first)
	}
	return n.closeSession()
}

func (n *node) openMetadata(cluster wire.U128) (*metadatareplica.Replica, error) {
	c := n.config
	cleaner := time.Duration(0)
	if c.PersonalAccessToken.Cleaner.Enabled {
		cleaner = c.PersonalAccessToken.Cleaner.Interval
	}
	return metadatareplica.Open(metadatareplica.Config{
		Cluster:      cluster,
		Limits:       metadata.Limits{Clients: c.Metadata.ClientsTableMax},
		MaxTokens:    c.PersonalAccessToken.MaxTokensPerUser,
		TokenCleaner: cleaner,
		Rebalance:    c.ConsumerGroup.RebalancingTimeout,
		SessionClaim: c.Heartbeat.Interval,
		Engine:       n.engine(c.Metadata.PrepareQueueDepth),
	}, metadatareplica.Deps{
		FS: n.fs, Root: n.root, Log: n.runtime.Log.Named("metadata"), Registry: n.runtime.Ops.Registry(), Fatal: n.die,
	})
}

func (n *node) openPartitions(cluster wire.U128) (*partitionreplica.Replica, error) {
	c := n.config
	cleaner := time.Duration(0)
	if c.DataMaintenance.Messages.CleanerEnabled {
		cleaner = c.DataMaintenance.Messages.Interval
	}
	loops := c.Node.Loops
	if loops == 0 {
		loops = max(1, runtime.GOMAXPROCS(0)/2)
	}
	return partitionreplica.Open(partitionreplica.Config{
		Cluster:         cluster,
		Loops:           loops,
		MaxPoll:         int(c.Limits.PollReply),
		MaxFrame:        int(c.MessageBus.MaxMessageSize),
		MaxOffsets:      maxOffsets,
		CleanerInterval: cleaner,
		TrashDelay:      c.Storage.TrashDelay,
		LowWaterBytes:   uint64(c.Storage.LowWater),
		LowWaterPercent: 5,
		Engine:          n.engine(c.Partition.PrepareQueueDepth),
	}, partitionreplica.Deps{
		FS: n.fs, Follower: n.metadata, Pool: n.pool, Log: n.runtime.Log.Named("partition"),
		Registry: n.runtime.Ops.Registry(), Fatal: n.die,
	})
}

// maxOffsets is how many consumer offsets a partition keeps per kind (released-clients.md 3.3).
const maxOffsets = 4096

func (n *node) engine(pipeline int) loop.EngineOptions {
	c := n.config
	return loop.EngineOptions{
		Suspect:  n.suspect(),
		Limits:   loop.Limits{Pipeline: pipeline, Queue: 2 * pipeline},
		FileSize: int64(c.Journal.FileSize), Budget: int64(c.Journal.Budget), Reserve: int64(c.Storage.Reserve),
		Workers: 4,
	}
}

func (n *node) openFront(cluster wire.U128) (*frontdoor.Server, error) {
	c := n.config
	heartbeat := time.Duration(0)
	if c.Heartbeat.Enabled {
		heartbeat = c.Heartbeat.Interval
	}
	return frontdoor.New(frontdoor.Config{
		Address: c.TCP.Address,
		TLS: frontdoor.TLS{
			Enabled: c.TCP.TLS.Enabled, CertFile: c.TCP.TLS.CertFile, KeyFile: c.TCP.TLS.KeyFile, SelfSigned: c.TCP.TLS.SelfSigned,
		},
		MaxFrame:        uint32(c.MessageBus.MaxMessageSize),
		MaxConnections:  c.Limits.Connections,
		FrameGrace:      c.Limits.FrameTimeout,
		Heartbeat:       heartbeat,
		TokensPerUser:   c.PersonalAccessToken.MaxTokensPerUser,
		PasswordWorkers: c.Limits.Logins,
		ClusterID:       cluster,
		DataDir:         c.System.Path,
	}, frontdoor.Deps{
		Metadata:   n.metadata,
		Partitions: func(uint64) link.Service { return n.partition },
		Follower:   n.metadata, Pool: n.pool, Logger: n.runtime.Log.Named("front-door"), Registry: n.runtime.Ops.Registry(),
	})
}

// root makes the first user.
func (n *node) root() (metadata.RootUser, error) {
	user, err := n.config.RootUser()
	if err != nil {
		return metadata.RootUser{}, err
	}
	hash := frontdoor.HashPassword([]byte(user.Password.Reveal()))
	n.runtime.Log.Info("root user created", "name", user.Name, "password", user.From)
	return metadata.RootUser{Name: user.Name, PasswordHash: hash}, nil
}

// die ends the process: its log can not be trusted any more.
func (n *node) die(status int, reason error) {
	select {
	case n.fatal <- service.WithExit(status, reason):
	default:
	}
}

// clusterID is the first 16 bytes of BLAKE3(name), in digest order (replica-wire.md 3.4).
func clusterID(name string) wire.U128 {
	sum := blake3.Sum256([]byte(name))
	return wire.DecodeU128(sum[:16])
}

func mkdir(path string) error { return os.MkdirAll(path, 0o750) }
