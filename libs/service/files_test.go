package service

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

func TestRootUserGenerated(t *testing.T) {
	data := filepath.Join(t.TempDir(), "not", "there", "yet")
	c, _ := load(t, nil, "IGGY_SYSTEM_PATH="+data)
	first, err := c.RootUser()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(data, RootPasswordFile)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v; want mode 0600", info, err)
	}
	text, _ := os.ReadFile(path)
	if first.Name != "iggy" || first.From != path || first.Password.Reveal()+"\n" != string(text) || len(first.Password.Reveal()) < 20 {
		t.Errorf("got %+v and file %q", first, text)
	}
	if again, err := c.RootUser(); err != nil || again != first {
		t.Errorf("a second call gives %+v, %v", again, err)
	}
	other, _ := load(t, nil, "IGGY_SYSTEM_PATH="+t.TempDir())
	if another, _ := other.RootUser(); another.Password == first.Password {
		t.Error("two data directories got one password")
	}
	if err := os.WriteFile(path, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.RootUser(); err == nil {
		t.Error("an empty password file was accepted")
	}
}

func TestRootUserGiven(t *testing.T) {
	data := t.TempDir()
	for _, given := range []struct {
		args, environ  []string
		name, password string
	}{
		{nil, []string{"IGGY_ROOT_USERNAME=admin", "IGGY_ROOT_PASSWORD=pass"}, "admin", "pass"},
		{[]string{"--with-default-root-credentials"}, []string{"IGGY_ROOT_USERNAME=admin", "IGGY_ROOT_PASSWORD=pass"}, "admin", "pass"},
		{[]string{"--with-default-root-credentials"}, nil, "iggy", "iggy"},
	} {
		c, _ := load(t, given.args, append(given.environ, "IGGY_SYSTEM_PATH="+data)...)
		if u, err := c.RootUser(); err != nil || u.Name != given.name || u.Password.Reveal() != given.password {
			t.Errorf("%v %v gives %+v, %v", given.args, given.environ, u, err)
		}
	}
	if entries, _ := os.ReadDir(data); len(entries) != 0 {
		t.Errorf("a password was written although one was given: %v", entries)
	}
}

// current_config.toml shows the bound addresses, no secret, and is itself a good configuration.
func TestCurrentConfig(t *testing.T) {
	data, secret := t.TempDir(), strings.Repeat("secret", 6)
	c, _ := load(t, nil, "IGGY_SYSTEM_PATH="+data, "IGGY_TCP_ADDRESS=127.0.0.1:0", "WHIPPET_CLUSTER_SECRET="+secret, "IGGY_ROOT_USERNAME=admin", "IGGY_ROOT_PASSWORD="+secret,
		"IGGY_CLUSTER_NODES_0_NAME=a", "IGGY_CLUSTER_NODES_0_PORTS_TCP=8090", "IGGY_HEARTBEAT_INTERVAL=90s")
	if err := c.WriteCurrent(Bound{TCP: "127.0.0.1:4711"}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(data, "runtime", "current_config.toml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), secret) {
		t.Error("the file holds a secret")
	}
	var parsed struct {
		TCP       struct{ Address string }
		HTTP      struct{ Enabled bool }
		Heartbeat struct{ Interval string }
		Cluster   struct {
			Nodes []struct{ Name string }
		}
	}
	if err := toml.Unmarshal(text, &parsed); err != nil {
		t.Fatal(err)
	}
	if parsed.TCP.Address != "127.0.0.1:4711" || parsed.HTTP.Enabled || parsed.Heartbeat.Interval != "90 s" || parsed.Cluster.Nodes[0].Name != "a" {
		t.Errorf("got %+v", parsed)
	}
	if c.TCP.Address != "127.0.0.1:0" || !c.HTTP.Enabled {
		t.Error("writing changed the configuration itself")
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("left beside it: %v", entries)
	}
	stripped := strings.ReplaceAll(string(text), "username = 'admin'", "")
	if again, _, err := Load([]string{"--config", file(t, "again.toml", stripped)}, nil); err != nil || again.TCP.Address != "127.0.0.1:4711" {
		t.Errorf("reading it back: %v", err)
	}
	if err := c.RemoveCurrent(); err != nil {
		t.Error(err)
	}
	if err := c.RemoveCurrent(); err != nil {
		t.Errorf("removing twice: %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the file is still there")
	}
}
