package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/routing"
	"github.com/whippet-mq/whippet/libs/service"
	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
	frontdoor "github.com/whippet-mq/whippet/services/front-door"
	"github.com/whippet-mq/whippet/services/front-door/httpapi"
	metadatareplica "github.com/whippet-mq/whippet/services/metadata-replica"
	partitionreplica "github.com/whippet-mq/whippet/services/partition-replica"
)

// drainLimit is how long each role may take to finish what it has admitted.
const drainLimit = 1500 * time.Millisecond

// node is one process with all three roles.
type node struct {
	config    *service.Config
	log       hclog.Logger
	registry  *prometheus.Registry
	fs        vfs.FS
	pool      *buffer.Pool
	fatal     chan error
	evidence  *journal.Evidence
	life      *journal.Life
	metadata  *metadatareplica.Replica
	partition *partitionreplica.Replica
	front     *frontdoor.Server
	disk      atomic.Pointer[service.Condition]
	makeRoot  func() (metadata.RootUser, error)
	stepped   bool            // replicas start no goroutine: loop.EngineOptions.Stepped
	clock     func() uint64   // of the loops, nil: the wall clock
	http      *httpapi.Server // nil when it is off

	// With other processes around, otherwise nil.
	cluster *cluster
	votes   *loop.Votes
	echoes  *loop.Echoes
	peers   *peers
	heart   *heart
	routes  *routes
	planes  planes
	router  *routing.Router
}

func newNode(fs vfs.FS, config *service.Config, log hclog.Logger, registry *prometheus.Registry) *node {
	n := &node{
		config: config, log: log, registry: registry, fs: fs, fatal: make(chan error, 1),
		pool: buffer.NewPool(int64(config.Limits.Memory)),
	}
	n.makeRoot = n.root
	return n
}

// serve starts the roles from the log up, works until ctx is done and stops them from the sockets
// down.
func serve(ctx context.Context, r *service.Runtime) error {
	path := r.Config.System.Path
	if err := os.MkdirAll(path, 0o750); err != nil {
		return service.WithExit(service.ExitConfig, fmt.Errorf("data directory: %w", err))
	}
	n := newNode(vfs.NewOS(path), r.Config, r.Log, r.Ops.Registry())
	var err error
	if n.cluster, err = arrange(r.Config); err != nil {
		return service.WithExit(service.ExitConfig, err)
	}
	data, err := n.claim()
	if err != nil {
		return err
	}
	defer func() { _ = data.Close() }()
	if err := n.config.RemoveCurrent(); err != nil {
		return err
	}
	n.disk.Store(r.Ops.Condition("disk"))
	n.diskLow(false)
	if err := n.openRoles(); err != nil {
		return err
	}
	if err := n.metadata.Damaged(); err != nil {
		r.Ops.Condition("metadata").Degrade(err.Error())
	}
	if err := n.openFront(); err != nil {
		return err
	}
	r.OnReload(n.reload)
	if err := r.Ready(n.bound()); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return n.stop()
	case err := <-n.fatal:
		return err
	}
}

// bound says where clients reach the node.
func (n *node) bound() service.Bound {
	b := n.planes.bound()
	if a := n.front.Addr(); a != nil {
		b.TCP = a.String()
	}
	if n.http != nil {
		b.HTTP = n.http.Addr().String()
	}
	if a := n.front.QUICAddr(); a != nil {
		b.QUIC = a.String()
	}
	if a := n.front.WebSocketAddr(); a != nil {
		b.WebSocket = a.String()
	}
	return b
}

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
		if err := n.join(id); err != nil {
			return err
		}
	}
	cluster := wire.ClusterID(n.config.Cluster.Name)
	if n.metadata, err = n.openMetadata(cluster, id.Node); err != nil {
		return err
	}
	if n.partition, err = n.openPartitions(cluster, id.Node); err != nil {
		return err
	}
	n.metadata.Partitions = n.partition
	if n.cluster != nil {
		n.metadata.Partitions = n
	}
	if n.life, err = n.evidence.Begin(n.fs, ".", id); err != nil {
		return fmt.Errorf("session record: %w", err)
	}
	n.metadata.Start()
	n.partition.Start()
	if n.cluster != nil {
		n.meet()
	}
	return nil
}

// stop ends the roles in the order of the request path, so that each finishes what it took, and
// closes the session once everything is synced.
func (n *node) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), drainLimit)
	defer cancel()
	var errs []error
	if n.http != nil {
		errs = append(errs, n.http.Stop(ctx))
	}
	if n.front != nil {
		errs = append(errs, n.front.Stop(ctx))
	}
	if n.cluster != nil {
		n.leave()
	}
	errs = append(errs, n.partition.Close(drainLimit), n.metadata.Stop(drainLimit))
	if err := errors.Join(errs[len(errs)-2:]...); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	if n.cluster != nil {
		if err := n.part(); err != nil {
			return fmt.Errorf("stop: %w", err)
		}
	}
	return n.life.End(append([]journal.LSN{n.metadata.End()}, n.partition.Ends()...))
}

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
		Engine:       n.engine(owner, 0, c.Metadata.PrepareQueueDepth),
	}, metadatareplica.Deps{
		FS: n.fs, Root: n.makeRoot, Log: n.log.Named("metadata"), Registry: n.registry, Fatal: n.die,
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
	return partitionreplica.Open(partitionreplica.Config{
		Cluster:         cluster,
		Node:            n.self(),
		Roster:          n.roster(),
		Loops:           n.loops(),
		MaxPoll:         int(c.Limits.PollReply),
		MaxFrame:        int(c.MessageBus.MaxMessageSize),
		MaxOffsets:      maxOffsets,
		CleanerInterval: cleaner,
		TrashDelay:      c.Storage.TrashDelay,
		LowWaterBytes:   uint64(c.Storage.LowWater),
		LowWaterPercent: 5,
		Engine:          n.engine(owner, 1, c.Partition.PrepareQueueDepth),
	}, partitionreplica.Deps{
		FS: n.fs, Follower: n.metadata, Pool: n.pool, Log: n.log.Named("partition"),
		Registry: n.registry, DiskLow: n.diskLow, Fatal: n.die,
	})
}

// diskLow shows on /readyz that sends are refused for lack of space. The process stays ready: reads,
// deletes and offset stores go on.
func (n *node) diskLow(low bool) {
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

func (n *node) engine(owner [16]byte, number uint32, pipeline int) loop.EngineOptions {
	c := n.config
	options := loop.EngineOptions{
		Owner:    journal.Owner{Node: owner, Loop: number},
		Suspect:  n.evidence.Suspect,
		Durable:  n.evidence.End,
		Limits:   loop.Limits{Pipeline: pipeline, Queue: 2 * pipeline},
		FileSize: int64(c.Journal.FileSize), Budget: int64(c.Journal.Budget), Reserve: int64(c.Storage.Reserve),
		Workers: 4, Stepped: n.stepped, Clock: n.clock,
	}
	if n.cluster != nil {
		options.Peers, options.Votes, options.Evidence, options.Echoes = n.peers, n.votes, n.evidence, n.echoes
	}
	return options
}

// openFront starts the listeners.
func (n *node) openFront() (err error) {
	c := n.config
	heartbeat := time.Duration(0)
	if c.Heartbeat.Enabled {
		heartbeat = c.Heartbeat.Interval
	}
	n.front, err = frontdoor.New(frontdoor.Config{
		Address: n.tcp(),
		TLS: frontdoor.TLS{
			Enabled: c.TCP.TLS.Enabled, CertFile: c.TCP.TLS.CertFile, KeyFile: c.TCP.TLS.KeyFile, SelfSigned: c.TCP.TLS.SelfSigned,
		},
		QUIC:            n.quic(),
		WebSocket:       n.webSocket(),
		MaxFrame:        uint32(c.MessageBus.MaxMessageSize),
		MaxConnections:  c.Limits.Connections,
		FrameGrace:      c.Limits.FrameTimeout,
		Heartbeat:       heartbeat,
		TokensPerUser:   c.PersonalAccessToken.MaxTokensPerUser,
		PasswordWorkers: c.Limits.Logins,
		LocalSessions:   max(1, c.Metadata.ClientsTableMax/2),
		ClusterID:       wire.ClusterID(c.Cluster.Name),
		ConfigText:      c.Current,
		DataDir:         c.System.Path,
	}, frontdoor.Deps{
		Metadata:   n.metadata,
		Partitions: func(uint64) link.Service { return n.partition },
		Router:     n.router,
		Follower:   n.metadata, Pool: n.pool, Logger: n.log.Named("front-door"), Registry: n.registry,
	})
	if err != nil {
		return service.WithExit(service.ExitConfig, err)
	}
	if err := n.openHTTP(); err != nil {
		return err
	}
	if err := n.front.Start(); err != nil {
		return err
	}
	if n.http != nil {
		n.http.Serve()
	}
	return nil
}

// root makes the first user.
func (n *node) root() (metadata.RootUser, error) {
	user, err := n.config.RootUser()
	if err != nil {
		return metadata.RootUser{}, err
	}
	hash := frontdoor.HashPassword([]byte(user.Password.Reveal()))
	n.log.Info("root user created", "name", user.Name, "credentials", user.From)
	return metadata.RootUser{Name: user.Name, PasswordHash: hash}, nil
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
