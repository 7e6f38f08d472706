package local

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func make3(t *testing.T, p Plan) *Cluster {
	t.Helper()
	c, err := Make(t.TempDir(), p)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// value is what a member's environment says of a name, "" when nothing.
func value(c *Cluster, m Member, name string) string {
	for _, kv := range c.environ(m) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

func TestServicesKnowTheMetadataReplicas(t *testing.T) {
	t.Setenv("IGGY_TCP_ADDRESS", "192.0.2.1:1")
	c := make3(t, Plan{Metadata: 3, Partition: 2, FrontDoor: 1, BasePort: 20000, Env: map[string]string{"WHIPPET_LOG_LEVEL": "debug"}})
	const roster = "0=127.0.0.1:20000,1=127.0.0.1:20002,2=127.0.0.1:20004"
	dirs := map[string]bool{}
	for _, m := range c.Members {
		if got := value(c, m, "WHIPPET_METADATA"); got != roster {
			t.Errorf("%s %d: %q", m.Role, m.ID, got)
		}
		if value(c, m, "WHIPPET_LOG_LEVEL") != "debug" || len(value(c, m, "WHIPPET_CLUSTER_SECRET")) < 32 {
			t.Errorf("%s %d lacks a setting", m.Role, m.ID)
		}
		if v := value(c, m, "IGGY_TCP_ADDRESS"); v == "192.0.2.1:1" {
			t.Error("the maker's own environment is passed on")
		}
		dirs[c.Data(m)] = true
	}
	if len(dirs) != 6 {
		t.Errorf("%d data directories", len(dirs))
	}
	if m := c.Members[1]; value(c, m, "WHIPPET_REPLICA_ADDRESS") != "127.0.0.1:20002" ||
		value(c, m, "WHIPPET_SERVICE_ADDRESS") != "127.0.0.1:20003" || value(c, m, "WHIPPET_REPLICA_ID") != "1" {
		t.Errorf("%v", c.environ(m))
	}
}

func TestAllRoleNodesShareARoster(t *testing.T) {
	c := make3(t, Plan{AllRole: 3})
	ports := map[string]bool{}
	for i, m := range c.Members {
		for j, other := range c.Members {
			prefix := "IGGY_CLUSTER_NODES_" + string(rune('0'+j)) + "_PORTS_"
			if got := "127.0.0.1:" + value(c, m, prefix+"TCP"); got != other.Ports["tcp"] {
				t.Errorf("node %d: roster entry %d has %s, want %s", i, j, got, other.Ports["tcp"])
			}
		}
		if value(c, m, "IGGY_TCP_ADDRESS") != m.Ports["tcp"] || value(c, m, "WHIPPET_REPLICA_ID") != string(rune('0'+i)) {
			t.Errorf("node %d: %v", i, c.environ(m))
		}
		for _, p := range m.Ports {
			ports[p] = true
		}
		ports[m.Replica] = true
	}
	if len(ports) != 15 {
		t.Errorf("%d ports for 15 listeners", len(ports))
	}
}

func TestPlansThatMakeNoSense(t *testing.T) {
	for name, p := range map[string]Plan{
		"both forms":   {AllRole: 3, Metadata: 3, Partition: 1, FrontDoor: 1},
		"no metadata":  {Partition: 1, FrontDoor: 1},
		"two metadata": {Metadata: 2, Partition: 1, FrontDoor: 1},
		"no front":     {Metadata: 1, Partition: 1},
		"no partition": {Metadata: 1, FrontDoor: 1},
	} {
		if _, err := Make(t.TempDir(), p); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestOpenFindsWhatMakeMade(t *testing.T) {
	made := make3(t, Plan{Metadata: 1, Partition: 1, FrontDoor: 1})
	m, err := made.Add(Partition)
	if err != nil || m.ID != 1 {
		t.Fatalf("%+v, %v", m, err)
	}
	if _, err := made.Add(Metadata); err == nil {
		t.Error("a metadata replica was added")
	}
	opened, err := Open(made.Dir())
	if err != nil {
		t.Fatal(err)
	}
	same := func(a, b Member) bool { return a.Role == b.Role && a.ID == b.ID && a.Replica == b.Replica }
	if !slices.EqualFunc(opened.Members, made.Members, same) || opened.Secret != made.Secret {
		t.Errorf("%+v, want %+v", opened, made)
	}
	if _, err := Make(made.Dir(), Plan{Metadata: 1, Partition: 1, FrontDoor: 1}); !errors.Is(err, ErrExists) {
		t.Error(err)
	}
	if _, err := Open(t.TempDir()); err == nil {
		t.Error("a cluster where there is none")
	}
	if p := opened.Status(); len(p) != 4 || p[0].Pid != 0 || p[0].Ready {
		t.Errorf("nothing runs: %+v", p)
	}
}

func TestEnded(t *testing.T) {
	const tail = " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 "
	for stat, want := range map[string]bool{
		"7 (whippet-server) S" + tail + "9 0": false,
		"7 (whippet-server) Z" + tail + "9 0": false,
		"7 (whippet-server) Z" + tail + "1 0": true,
		"7 (a) Z b) R" + tail + "1 0":         false,
		"7 (short) Z 1":                       false,
	} {
		if ended(stat) != want {
			t.Errorf("%q: %v", stat, !want)
		}
	}
}

func TestMembersWithAddressesOfTheirOwn(t *testing.T) {
	c := make3(t, Plan{AllRole: 2, BasePort: 7000, Hosts: []string{"192.0.2.1", "192.0.2.2"}})
	m := c.Members[1]
	for name, want := range map[string]string{
		"IGGY_CLUSTER_NODES_0_IP": "192.0.2.1", "IGGY_CLUSTER_NODES_1_IP": "192.0.2.2",
		"WHIPPET_OPS_ADDRESS": "192.0.2.2:0", "IGGY_TCP_ADDRESS": "192.0.2.2:7006",
	} {
		if got := value(c, m, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	c = make3(t, Plan{Metadata: 1, Partition: 1, FrontDoor: 1, BasePort: 7000, Hosts: []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}})
	if got := value(c, c.Members[1], "WHIPPET_SERVICE_ADDRESS"); got != "192.0.2.2:0" {
		t.Error(got)
	}
	for name, p := range map[string]Plan{
		"one host too few": {AllRole: 2, BasePort: 7000, Hosts: []string{"192.0.2.1"}},
		"free ports":       {AllRole: 1, Hosts: []string{"192.0.2.1"}},
	} {
		if _, err := Make(t.TempDir(), p); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestMembersStartWithin(t *testing.T) {
	c := make3(t, Plan{AllRole: 1})
	wanted := errors.New("not here")
	c.Within = func(m Member, start func() error) error { return wanted }
	if err := c.Start(c.Members[0]); !errors.Is(err, wanted) {
		t.Error(err)
	}
}
