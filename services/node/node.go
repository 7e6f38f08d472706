package node

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/control"
	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/routing"
	"github.com/whippet-mq/whippet/libs/service"
	"github.com/whippet-mq/whippet/libs/vfs"
	frontdoor "github.com/whippet-mq/whippet/services/front-door"
	"github.com/whippet-mq/whippet/services/front-door/httpapi"
	metadatareplica "github.com/whippet-mq/whippet/services/metadata-replica"
	partitionreplica "github.com/whippet-mq/whippet/services/partition-replica"
)

// drainLimit is how long each role may take to finish what it has admitted.
const drainLimit = 1500 * time.Millisecond

// node is one process with its roles.
type node struct {
	roles     Roles
	config    *service.Config
	log       hclog.Logger
	registry  *prometheus.Registry
	meter     *control.Meter     // in front of registry, for roles
	events    *control.Publisher // nil where nobody is told
	fs        vfs.FS
	pool      *buffer.Pool
	fatal     chan error
	evidence  *journal.Evidence
	life      *journal.Life
	metadata  *metadatareplica.Replica  // nil without the role
	partition *partitionreplica.Replica // nil without the role
	front     *frontdoor.Server         // nil without the role
	follower  follower
	disk      atomic.Pointer[service.Condition]
	makeRoot  func() (metadata.RootUser, error)
	stepped   bool            // replicas start no goroutine: loop.EngineOptions.Stepped
	clock     func() uint64   // of the loops, nil: the wall clock
	http      *httpapi.Server // nil when it is off

	// With other processes around, otherwise nil.
	cluster   *cluster
	votes     *loop.Votes
	echoes    *loop.Echoes
	peers     *peers
	heart     *heart
	routes    *routes
	router    *routing.Router
	registrar *partitionreplica.Registrar // keeps a partition replica among the nodes
	feed      *follow                     // nil where the metadata is replicated here
	member    *service.Condition          // of the metadata group
	joined    *joined                     // of a node of a roster
	planes    planes
	ending    context.Context // done when the process stops
	end       func()
}

// follower is the metadata as this process knows it.
type follower interface {
	View() *metadata.View
	Changed() <-chan struct{}
	Wait(op uint64, limit time.Duration) bool
}

func newNode(fs vfs.FS, config *service.Config, log hclog.Logger, registry *prometheus.Registry) *node {
	n := &node{
		roles: allRoles, config: config, log: log, registry: registry, meter: control.NewMeter(registry), fs: fs, fatal: make(chan error, 1),
		pool: buffer.NewPool(int64(config.Limits.Memory)),
	}
	n.makeRoot = n.root
	n.ending, n.end = context.WithCancel(context.Background())
	return n
}

// serve starts the roles from the log up, works until ctx is done and stops them from the sockets
// down.
func serve(ctx context.Context, r *service.Runtime, roles Roles) error {
	place, err := arrange(r.Config, roles)
	if err != nil {
		return service.WithExit(service.ExitConfig, err)
	}
	if roles.slots() {
		slot, err := takeSlot(r.Config)
		if err != nil {
			return err
		}
		defer func() { _ = slot.Close() }()
	}
	path := r.Config.System.Path
	if err := os.MkdirAll(path, 0o750); err != nil {
		return service.WithExit(service.ExitConfig, fmt.Errorf("data directory: %w", err))
	}
	n := newNode(vfs.NewOS(path), r.Config, r.Log, r.Ops.Registry())
	n.roles, n.cluster = roles, place
	defer n.end()
	if err := n.openControl(r.Ops); err != nil {
		return err
	}
	defer n.events.Close()
	data, err := n.claim()
	if err != nil {
		return err
	}
	defer func() { _ = data.Close() }()
	if err := n.config.RemoveCurrent(); err != nil {
		return err
	}
	n.disk.Store(r.Ops.Condition("disk"))
	n.showDisk(false)
	if n.cluster != nil && roles.Metadata {
		n.member = r.Ops.Condition("member")
		n.member.Fail("the metadata group has not taken this process in yet")
	}
	context.AfterFunc(ctx, n.end) // whatever start-up waits for
	if err := n.open(); err != nil {
		if ctx.Err() != nil {
			return nil // asked to stop while it waited for others
		}
		return err
	}
	if n.metadata != nil && n.metadata.Damaged() != nil {
		r.Ops.Condition("metadata").Degrade(n.metadata.Damaged().Error())
	}
	go returnMemory(n.ending)
	r.OnReload(n.reload)
	if err := r.Ready(n.bound()); err != nil {
		return err
	}
	n.events.Say(control.Event{Kind: control.Ready})
	select {
	case <-ctx.Done():
		n.events.Say(control.Event{Kind: control.Stopping})
		return n.stop()
	case err := <-n.fatal:
		n.events.Say(control.Event{Kind: control.Stopping, Reason: err.Error()})
		return err
	}
}

// open starts the roles in the order in which they stand on each other.
func (n *node) open() error {
	if n.roles.Metadata || n.roles.Partition {
		if err := n.openRoles(); err != nil {
			return err
		}
	} else if err := n.openRoutes(); err != nil {
		return err
	}
	n.measure()
	if !n.roles.FrontDoor {
		return nil
	}
	return n.openFront()
}
