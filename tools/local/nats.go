package local

import "net"

// Ports of the NATS server: for processes, and for whoever asks whether it is well.
const (
	natsPort    = "nats"
	natsMonitor = "monitor"
)

// NATS is where the NATS server of the cluster is, "" when it has none. It asks nobody who they are: it listens on
// loopback only.
func (c *Cluster) NATS() string {
	for _, m := range c.Members {
		if m.Role == NATS {
			return "nats://" + m.Ports[natsPort]
		}
	}
	return ""
}

// arguments are those of the program of a member. The other programs take settings from the environment.
func (m Member) arguments() []string {
	if m.Role != NATS {
		return nil
	}
	host, port, _ := net.SplitHostPort(m.Ports[natsPort])
	_, monitor, _ := net.SplitHostPort(m.Ports[natsMonitor])
	return []string{"--addr", host, "--port", port, "--http_port", monitor}
}
