package local

import (
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
)

// environ is the environment of a member: what the cluster needs, then what its maker asked for. Of
// this process's own environment no setting of a broker is passed on.
func (c *Cluster) environ(m Member) []string {
	settings := map[string]string{
		"IGGY_SYSTEM_PATH":       c.Data(m),
		"IGGY_ROOT_USERNAME":     "iggy",
		"IGGY_ROOT_PASSWORD":     "iggy",
		"WHIPPET_OPS_ADDRESS":    m.at(0),
		"WHIPPET_CLUSTER_SECRET": c.Secret,
	}
	if nats := c.NATS(); nats != "" {
		settings["WHIPPET_NATS_URL"] = nats
	}
	switch m.Role {
	case NATS:
		settings = nil
	case AllRole:
		c.allRole(m, settings)
	default:
		c.service(m, settings)
	}
	if m.Role != NATS {
		maps.Copy(settings, c.Env)
	}
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "IGGY_") && !strings.HasPrefix(kv, "WHIPPET_") {
			env = append(env, kv)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(settings)) {
		env = append(env, k+"="+settings[k])
	}
	return env
}

// service sets up one of the three services.
func (c *Cluster) service(m Member, settings map[string]string) {
	var roster []string
	for _, other := range c.Members {
		if other.Role == Metadata {
			roster = append(roster, fmt.Sprintf("%d=%s", other.ID, other.Replica))
		}
	}
	settings["WHIPPET_METADATA"] = strings.Join(roster, ",")
	switch m.Role {
	case Metadata:
		host, port, _ := net.SplitHostPort(m.Replica)
		settings["WHIPPET_REPLICA_ID"] = fmt.Sprint(m.ID)
		settings["WHIPPET_REPLICA_ADDRESS"] = m.Replica
		settings["WHIPPET_SERVICE_ADDRESS"] = net.JoinHostPort(host, following(port))
	case Partition:
		settings["WHIPPET_REPLICA_ADDRESS"] = m.at(0)
		settings["WHIPPET_SERVICE_ADDRESS"] = m.at(0)
	case FrontDoor:
		for _, name := range listeners {
			settings["IGGY_"+strings.ToUpper(name)+"_ADDRESS"] = m.at(0)
		}
	}
}

func following(port string) string {
	n := 0
	_, _ = fmt.Sscan(port, &n)
	return fmt.Sprint(n + 1)
}

// allRole sets up a node with nothing but the reference's own settings.
func (c *Cluster) allRole(m Member, settings map[string]string) {
	settings["IGGY_CLUSTER_ENABLED"] = "true"
	settings["IGGY_CLUSTER_AUTH_ENABLED"] = "true"
	settings["WHIPPET_REPLICA_ID"] = fmt.Sprint(m.ID)
	for i, other := range c.Members {
		if other.Role != AllRole {
			continue
		}
		prefix := fmt.Sprintf("IGGY_CLUSTER_NODES_%d_", i)
		settings[prefix+"NAME"] = fmt.Sprintf("node-%d", other.ID)
		settings[prefix+"IP"] = other.host()
		settings[prefix+"REPLICA_ID"] = fmt.Sprint(other.ID)
		_, settings[prefix+"PORTS_TCP_REPLICA"], _ = net.SplitHostPort(other.Replica)
		for _, name := range listeners {
			_, settings[prefix+"PORTS_"+strings.ToUpper(name)], _ = net.SplitHostPort(other.Ports[name])
		}
	}
	for _, name := range listeners {
		settings["IGGY_"+strings.ToUpper(name)+"_ADDRESS"] = m.Ports[name]
	}
}
