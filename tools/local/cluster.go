package local

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Role is what a process is.
type Role string

// Roles, with their binaries.
const (
	Metadata  Role = "metadata"
	Partition Role = "partition"
	FrontDoor Role = "front-door"
	AllRole   Role = "all-role"
	NATS      Role = "nats" // the control plane: its server
)

// binary is the program of a role.
func (r Role) binary() string {
	switch r {
	case Metadata, Partition:
		return "whippet-" + string(r) + "-replica"
	case FrontDoor:
		return "whippet-front-door"
	case NATS:
		return "nats-server"
	}
	return "whippet-server"
}

// Plan is the cluster to make: either services or all-role nodes.
type Plan struct {
	Bin       string            // directory of the binaries
	Metadata  int               // metadata replicas: 1, 3 or 5
	Partition int               // partition replicas
	FrontDoor int               // front-doors
	AllRole   int               // nodes with all roles; then nothing else
	NATS      bool              // a NATS server on loopback that all others tell what happens
	BasePort  int               // first port of a range; 0: free ports
	Hosts     []string          // address of each member, metadata replicas first, then as above; nil: loopback. Needs BasePort
	Env       map[string]string // settings of every process, over those the cluster needs
}

// Cluster is a cluster in a directory.
type Cluster struct {
	// Within runs the start of a member where its process shall live: a network namespace, for one, is
	// that of the thread that starts a process. It is not kept in the directory. nil: here.
	Within func(m Member, start func() error) error `json:"-"`

	dir     string
	Bin     string            `json:"bin"`
	Secret  string            `json:"secret"`
	Env     map[string]string `json:"env"`
	Members []Member          `json:"members"`
	Next    int               `json:"next_port"` // of the range, 0: free ports
}

// Member is one process of the cluster, running or not.
type Member struct {
	Role    Role              `json:"role"`
	ID      int               `json:"id"`
	Host    string            `json:"host,omitempty"`    // empty: loopback
	Replica string            `json:"replica,omitempty"` // replica plane; fixed for the members others must know
	Ports   map[string]string `json:"ports,omitempty"`   // fixed listeners of all-role nodes and of NATS, by name
}

const descriptor = "cluster.json"

// ErrExists says that the directory holds a cluster already.
var ErrExists = errors.New("there is a cluster already")

// Make plans a cluster in dir. Nothing runs yet.
func Make(dir string, p Plan) (*Cluster, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, descriptor)); err == nil {
		return nil, fmt.Errorf("%s: %w", dir, ErrExists)
	}
	bin, err := filepath.Abs(p.Bin)
	if err != nil {
		return nil, err
	}
	secret := make([]byte, 32)
	_, _ = rand.Read(secret)
	c := &Cluster{dir: dir, Bin: bin, Secret: hex.EncodeToString(secret), Env: maps.Clone(p.Env), Next: p.BasePort}
	ports := &ports{next: p.BasePort}
	defer ports.release()
	for _, group := range []struct {
		role  Role
		count int
	}{{NATS, p.servers()}, {Metadata, p.Metadata}, {Partition, p.Partition}, {FrontDoor, p.FrontDoor}, {AllRole, p.AllRole}} {
		for id := range group.count {
			if len(p.Hosts) > 0 {
				ports.host = p.Hosts[len(c.Members)]
			}
			m, err := ports.member(group.role, id)
			if err != nil {
				return nil, err
			}
			c.Members = append(c.Members, m)
		}
	}
	c.Next = ports.next
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	return c, c.save()
}

// servers is how many NATS servers there are.
func (p *Plan) servers() int {
	if p.NATS {
		return 1
	}
	return 0
}

func (p *Plan) check() error {
	services := p.Metadata + p.Partition + p.FrontDoor
	switch {
	case len(p.Hosts) > 0 && (p.BasePort == 0 || len(p.Hosts) != services+p.AllRole):
		return fmt.Errorf("%d hosts for %d members: each needs one, and a base port, for ports there cannot be tried", len(p.Hosts), services+p.AllRole)
	case p.NATS && len(p.Hosts) > 0:
		return errors.New("a NATS server stands on loopback, out of reach of members with hosts of their own")
	case p.AllRole > 0 && services > 0:
		return errors.New("a cluster has either services or all-role nodes")
	case p.AllRole > 0:
		return nil
	case p.Metadata != 1 && p.Metadata != 3 && p.Metadata != 5:
		return fmt.Errorf("%d metadata replicas: want 1, 3 or 5", p.Metadata)
	case p.Partition < 1 || p.FrontDoor < 1:
		return errors.New("a cluster needs a partition replica and a front-door")
	}
	return nil
}

// Open finds the cluster in dir.
func Open(dir string) (*Cluster, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, descriptor))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s: there is no cluster", dir)
	}
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, descriptor), err)
	}
	return c, nil
}

func (c *Cluster) save() error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	beside := filepath.Join(c.dir, descriptor+".new")
	if err := os.WriteFile(beside, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(beside, filepath.Join(c.dir, descriptor))
}

// Add plans one more process of a role that scales and returns it.
func (c *Cluster) Add(role Role) (Member, error) {
	if role != Partition && role != FrontDoor {
		return Member{}, fmt.Errorf("a running cluster grows by %q and %q, not by %q", Partition, FrontDoor, role)
	}
	id := 0
	for _, m := range c.Members {
		if m.Role == role {
			id = max(id, m.ID+1)
		}
	}
	ports := &ports{next: c.Next}
	defer ports.release()
	m, err := ports.member(role, id)
	if err != nil {
		return Member{}, err
	}
	c.Members, c.Next = append(c.Members, m), ports.next
	return m, c.save()
}

// Find is the member of that role and id.
func (c *Cluster) Find(role Role, id int) (Member, error) {
	i := slices.IndexFunc(c.Members, func(m Member) bool { return m.Role == role && m.ID == id })
	if i < 0 {
		return Member{}, fmt.Errorf("there is no %s %d", role, id)
	}
	return c.Members[i], nil
}
