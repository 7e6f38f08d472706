package node

import (
	"fmt"
	"net"
	"os"

	"github.com/whippet-mq/whippet/libs/control"
	"github.com/whippet-mq/whippet/libs/service"
	"github.com/whippet-mq/whippet/libs/wire"
)

// openControl begins to tell people what happens here: at the ops endpoint, and over NATS where one is
// configured. Nothing waits for either.
func (n *node) openControl(ops *service.Ops) error {
	c := &n.config.NATS
	local := control.NewLocal()
	buses := []control.Bus{local}
	metrics := control.NewMetrics(n.registry)
	if c.URL != "" {
		bus, err := control.OpenNATS(control.NATSOptions{
			URL: c.URL, User: c.User, Password: c.Password.Reveal(), Seed: c.NKey.Reveal(), CAFile: c.CAFile,
			Name: "whippet " + n.roles.name(), Log: n.log.Named("control"), Metrics: metrics,
		})
		if err != nil {
			return service.WithExit(service.ExitConfig, fmt.Errorf("nats (nats.url from %s): %w", n.config.Source("nats.url"), err))
		}
		buses = append(buses, bus)
	}
	n.events = control.NewPublisher(control.PublisherConfig{
		Source:  control.Source{Cluster: n.config.Cluster.Name, Role: n.roles.name(), Ops: shownOps(ops.Address()), Version: service.Version},
		Buses:   buses,
		Measure: n.meter.Snapshot,
		Metrics: metrics,
	})
	if self := n.self(); n.cluster != nil && self != wire.FrontDoorID {
		n.events.Is(self)
	}
	ops.Handle(control.StreamPath, control.Stream(local))
	n.events.Say(control.Event{Kind: control.Starting})
	return nil
}

// shownOps is the ops endpoint as others may find it: under the name of the machine if it listens everywhere.
func shownOps(bound string) string {
	host, port, err := net.SplitHostPort(bound)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsUnspecified() {
		return bound
	}
	name, err := os.Hostname()
	if err != nil {
		return bound
	}
	return net.JoinHostPort(name, port)
}

// name is that of the roles in subjects.
func (r Roles) name() string {
	switch r {
	case Roles{FrontDoor: true}:
		return control.RoleFrontDoor
	case Roles{Metadata: true}:
		return control.RoleMetadata
	case Roles{Partition: true}:
		return control.RolePartition
	}
	return control.RoleServer
}

// sayNode tells something of another node.
func (n *node) sayNode(kind control.Kind, node uint8) {
	n.events.Say(control.Event{Kind: kind, Node: &node})
}

// diskLow shows that sends are refused for lack of space, or no longer.
func (n *node) diskLow(low bool) {
	n.showDisk(low)
	kind := control.DiskRoom
	if low {
		kind = control.DiskFull
	}
	n.events.Say(control.Event{Kind: kind})
}
