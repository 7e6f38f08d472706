package service

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// load reads a configuration that must be good.
func load(t *testing.T, args []string, environ ...string) (*Config, []Warning) {
	t.Helper()
	c, warnings, err := Load(args, environ)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return c, warnings
}

// refused reads a configuration that must be bad and returns the message.
func refused(t *testing.T, args []string, environ ...string) string {
	t.Helper()
	_, _, err := Load(args, environ)
	if err == nil {
		t.Fatalf("Load(%q, %q) accepted it", args, environ)
	}
	return err.Error()
}

func contains(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q does not say %q", text, w)
		}
	}
}

// Every setting of the reference is known under its key and its variable, with the same default.
func TestReferenceSettings(t *testing.T) {
	ours := map[string]string{ // where we chose another default
		"metadata.clients_table_max": "65536",
	}
	known := map[string]setting{}
	for _, s := range catalog() {
		s.setDefault()
		known[s.key] = s
	}
	table, err := os.ReadFile("testdata/reference-settings.tsv")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(table)) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(cells) != 3 {
			continue
		}
		rows++
		s, ok := known[strings.ReplaceAll(cells[0], "<j>", "<i>")]
		if !ok {
			t.Errorf("%s is unknown", cells[0])
			continue
		}
		if name := strings.ReplaceAll(cells[1], "<J>", "<I>"); !slices.Contains(s.environment(), name) {
			t.Errorf("%s is not read from %s but from %v", s.key, name, s.environment())
		}
		want := cells[2]
		if other := ours[s.key]; other != "" {
			want = other
		}
		if want == "-" {
			if !s.value.IsZero() {
				t.Errorf("%s defaults to %s, want nothing", s.key, s.text())
			}
			continue
		}
		expected := s
		expected.value = reflect.New(s.value.Type()).Elem()
		if err := expected.set(want); err != nil || expected.text() != s.text() {
			t.Errorf("%s defaults to %s, want %s (%v)", s.key, s.text(), want, err)
		}
	}
	if rows != 151 {
		t.Errorf("%d rows checked, want 151", rows)
	}
}

func TestEnvironmentNamesAreUnique(t *testing.T) {
	owner := map[string]string{}
	for _, s := range catalog() {
		for _, name := range s.environment() {
			if other := owner[name]; other != "" {
				t.Errorf("%s means %s and %s", name, other, s.key)
			}
			owner[name] = s.key
		}
	}
	for _, name := range []string{"WHIPPET_CLUSTER_NAME", "WHIPPET_CLUSTER_SECRET", "WHIPPET_DATA", "WHIPPET_METADATA", "WHIPPET_REPLICA_ID", "WHIPPET_ADVERTISE",
		"WHIPPET_NATS_URL", "WHIPPET_NATS_USER", "WHIPPET_NATS_PASSWORD", "WHIPPET_NATS_NKEY", "WHIPPET_NATS_CA_FILE", "WHIPPET_OPS_ADDRESS", "WHIPPET_REPLICATION_FACTOR", "WHIPPET_CLUSTER_MIXED", "WHIPPET_SERVICE_ADDRESS", "WHIPPET_REPLICA_ADDRESS",
		"WHIPPET_ZONE", "WHIPPET_LOG_FORMAT", "WHIPPET_LOG_LEVEL"} {
		if owner[name] == "" {
			t.Errorf("%s is unknown", name)
		}
	}
}

func TestPrecedence(t *testing.T) {
	path := file(t, "c.toml", "replica_id = 1\n[heartbeat]\ninterval = '10 s'\n[tcp]\naddress = '127.0.0.1:1'\n[logging]\nlevel = 'warn'\n")
	c, warnings := load(t, []string{"--config", path, "--replica-id", "3"}, "IGGY_TCP_ADDRESS=127.0.0.1:2", "IGGY_HEARTBEAT_ENABLED=", "IGGY_SYSTEM_PATH=/d")
	if c.Heartbeat.Interval != 10*time.Second || c.TCP.Address != "127.0.0.1:2" || c.Node.ReplicaID != 3 || c.System.Logging.Level != "warn" || !c.Heartbeat.Enabled || c.System.Path != "/d" {
		t.Errorf("got %+v", c)
	}
	if len(warnings) != 0 {
		t.Errorf("warnings %v", warnings)
	}
	for key, want := range map[string]string{"heartbeat.interval": "file " + path, "tcp.address": "environment IGGY_TCP_ADDRESS", "replica_id": "flag --replica-id", "ops.address": "default"} {
		if got := c.Source(key); got != want || c.Explicit(key) != (want != "default") {
			t.Errorf("source of %s is %q, want %q", key, got, want)
		}
	}
}

func TestFlags(t *testing.T) {
	c, _ := load(t, []string{"-f", "--with-default-root-credentials"})
	if !c.Fresh || !c.DefaultRoot {
		t.Errorf("got %v %v", c.Fresh, c.DefaultRoot)
	}
	for flag, want := range map[string]error{"--help": ErrHelp, "-h": ErrHelp, "--version": ErrVersion} {
		if _, _, err := Load([]string{flag}, nil); !errors.Is(err, want) {
			t.Errorf("%s: %v", flag, err)
		}
	}
	contains(t, refused(t, []string{"--frsh"}), "-frsh", "--help")
	contains(t, refused(t, []string{"start"}), `"start"`)
	contains(t, refused(t, []string{"--replica-id", "x"}), "replica_id", `"x"`, "flag --replica-id", "-1 to 254")
}

// A bad value's message names key, value, source and what is allowed.
func TestBadValues(t *testing.T) {
	for _, bad := range [][]string{
		{"IGGY_TCP_ADDRESS=nope", "tcp.address", `"nope"`, "environment IGGY_TCP_ADDRESS", "host:port"},
		{"IGGY_TCP_ADDRESS=1.2.3.4:99999", "tcp.address", "host:port"},
		{"IGGY_HEARTBEAT_INTERVAL=30", "heartbeat.interval", `"30"`, "duration, at least 1 ms"},
		{"IGGY_HEARTBEAT_ENABLED=maybe", "heartbeat.enabled", "true, false"},
		{"IGGY_METADATA_PREPARE_QUEUE_DEPTH=128", "metadata.prepare_queue_depth", "1 to 127"},
		{"IGGY_MESSAGE_BUS_MAX_MESSAGE_SIZE=1 GiB", "message_bus.max_message_size", "1 MiB to 64 MiB"},
		{"WHIPPET_LOG_FORMAT=xml", "system.logging.format", "text, json"},
		{"WHIPPET_REPLICATION_FACTOR=2", "replication_factor", "1, 3, 5, 7"},
		{"IGGY_CLUSTER_NODES_0_PORTS_TCP=70000", "cluster.nodes.0.ports.tcp", "0..65535"},
		{"IGGY_CLUSTER_NODES_0_IP=here", "cluster.nodes.0.ip", "IP address"},
		{"WHIPPET_LIMITS_MEMORY=64 MiB", "limits.memory", "at least 128 MiB"},
		{"IGGY_ROOT_USERNAME=me", "root", "together"},
		{"IGGY_CLUSTER_ENABLED=true", "cluster.nodes", "roster"},
		{"IGGY_SYSTEM_SEGMENT_ARCHIVE_EXPIRED=true", "system.segment.archive_expired"},
		{"IGGY_CONFIG_PATH=/does/not/exist.toml", "/does/not/exist.toml"},
	} {
		contains(t, refused(t, nil, bad[0]), bad[1:]...)
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	contains(t, refused(t, nil, "IGGY_TCP_ADDRESS=x", "IGGY_HEARTBEAT_INTERVAL=y"), "tcp.address", "heartbeat.interval")
}

func TestUnknownNames(t *testing.T) {
	path := file(t, "c.toml", "[tcp]\nadress = 'x'\n[[cluster.nodes]]\nnme = 'a'\n")
	contains(t, refused(t, []string{"--config", path}), "tcp.adress", path, "tcp.address", "cluster.nodes.0.nme", "cluster.nodes.<i>.name")
	contains(t, refused(t, []string{"--config", file(t, "d.toml", "[system.segment]\nsize = '1 GiB'\n")}), "option of each topic")
	contains(t, refused(t, []string{"--config", file(t, "e.toml", "a = \n")}), "line 1")

	_, warnings := load(t, nil, "IGGY_TCP_ADRESS=x", "WHIPPET_ZOME=x", "HOME=/root", "IGGY_DISPLAY_CONFIG=1")
	if len(warnings) != 2 {
		t.Fatalf("warnings %v, want one for each of two", warnings)
	}
	contains(t, warnings[0].String(), "IGGY_TCP_ADRESS", "IGGY_TCP_ADDRESS")
	contains(t, warnings[1].String(), "WHIPPET_ZOME", "WHIPPET_ZONE")
}

func TestIneffectiveSettingsWarn(t *testing.T) {
	_, warnings := load(t, nil, "IGGY_SYSTEM_MEMORY_POOL_SIZE=1 GiB", "IGGY_SYSTEM_SHARDING_PIN_CORES=true", "IGGY_QUIC_SEND_WINDOW=1 MiB")
	var keys []string
	for _, w := range warnings {
		keys = append(keys, w.Name)
	}
	if !slices.Equal(keys, []string{"quic.send_window", "system.memory_pool.size"}) {
		t.Errorf("warnings for %v; the default value needs none", keys)
	}
}

func TestListenersThatCannotWorkRefuseToStart(t *testing.T) {
	for _, c := range []struct {
		env  []string
		says string
	}{
		{[]string{"IGGY_WEBSOCKET_TLS_ENABLED=true", "IGGY_WEBSOCKET_TLS_SELF_SIGNED=false", "IGGY_WEBSOCKET_TLS_CERT_FILE=/absent"}, "websocket.tls.cert_file"},
		{[]string{"IGGY_QUIC_CERTIFICATE_SELF_SIGNED=false"}, "quic.certificate.cert_file"},
		{[]string{"IGGY_QUIC_CERTIFICATE_SELF_SIGNED=false", "IGGY_QUIC_CERTIFICATE_CERT_FILE=/absent", "IGGY_QUIC_CERTIFICATE_KEY_FILE=/absent"}, "cannot be read"},
		{[]string{"IGGY_QUIC_RECEIVE_WINDOW=1 MiB"}, "quic.stream_receive_window"},
		{[]string{"IGGY_MESSAGE_BUS_MAX_MESSAGE_SIZE=1 MiB", "IGGY_WEBSOCKET_MAX_MESSAGE_SIZE=2 MiB"}, "websocket.max_message_size"},
		{[]string{"IGGY_QUIC_INITIAL_MTU=1199"}, "quic.initial_mtu"},
	} {
		contains(t, refused(t, nil, c.env...), c.says)
	}
	load(t, nil, "IGGY_QUIC_ENABLED=false", "IGGY_QUIC_CERTIFICATE_SELF_SIGNED=false")
}

func TestEncryptionKeyRefusesToStart(t *testing.T) {
	const key = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	for _, variable := range []string{"IGGY_SYSTEM_ENCRYPTION_KEY=" + key, "IGGY_ENCRYPTION_KEY=" + key, "IGGY_SYSTEM_ENCRYPTION_KEY_FILE=" + file(t, "key", key)} {
		message := refused(t, nil, variable)
		contains(t, message, "system.encryption.key", "clear")
		if strings.Contains(message, key) {
			t.Errorf("the message shows the key: %s", message)
		}
	}
	contains(t, refused(t, nil, "IGGY_SYSTEM_ENCRYPTION_ENABLED=true"), "system.encryption.enabled")
}

func TestSecretFromFile(t *testing.T) {
	secret := strings.Repeat("s", 32)
	c, _ := load(t, nil, "WHIPPET_CLUSTER_SECRET_FILE="+file(t, "s", secret+"\n"), "IGGY_ROOT_USERNAME=admin", "IGGY_ROOT_PASSWORD_FILE="+file(t, "p", "pass word\n"))
	if c.Cluster.Auth.SharedSecret.Reveal() != secret || c.Root.Password.Reveal() != "pass word" {
		t.Errorf("got %q, %q", c.Cluster.Auth.SharedSecret.Reveal(), c.Root.Password.Reveal())
	}
	contains(t, refused(t, nil, "WHIPPET_CLUSTER_SECRET_FILE=/does/not/exist"), "cluster.auth.shared_secret", "cannot be read")
}

func TestTwoNamesOfOneSetting(t *testing.T) {
	c, _ := load(t, nil, "WHIPPET_DATA=/d", "IGGY_SYSTEM_PATH=/d")
	if c.System.Path != "/d" {
		t.Errorf("got %s", c.System.Path)
	}
	contains(t, refused(t, nil, "WHIPPET_DATA=/d", "IGGY_SYSTEM_PATH=/e"), "system.path", "WHIPPET_DATA", "IGGY_SYSTEM_PATH")
}

func TestRustLog(t *testing.T) {
	for _, c := range []struct {
		environ []string
		level   string
	}{
		{[]string{"RUST_LOG=iggy=trace,debug"}, "debug"},
		{[]string{"RUST_LOG=debug", "IGGY_SYSTEM_LOGGING_LEVEL=error"}, "debug"},
		{[]string{"RUST_LOG=debug", "WHIPPET_LOG_LEVEL=error"}, "error"},
		{[]string{"RUST_LOG=iggy=trace"}, "info"},
	} {
		if got, _ := load(t, nil, c.environ...); got.System.Logging.Level != c.level {
			t.Errorf("%v gives %s, want %s", c.environ, got.System.Logging.Level, c.level)
		}
	}
}

// A list that the environment touches is the environment's alone.
func TestListsOfTables(t *testing.T) {
	path := file(t, "c.toml", `
[[cluster.nodes]]
name = "a"
replica_id = 0
ports = { tcp = 8090 }
[[cluster.nodes]]
name = "b"
replica_id = 1
`)
	c, _ := load(t, []string{"--config", path})
	if len(c.Cluster.Nodes) != 2 || c.Cluster.Nodes[0].Ports.TCP != 8090 || c.Cluster.Nodes[1].Name != "b" {
		t.Errorf("file: %+v", c.Cluster.Nodes)
	}
	c, _ = load(t, []string{"--config", path}, "IGGY_CLUSTER_NODES_0_NAME=z", "IGGY_CLUSTER_NODES_0_ADVERTISED_ADDRESSES_1_CLIENT_CIDR=10.0.0.0/8", "IGGY_CLUSTER_NODES_00_REPLICA_ID=4")
	if len(c.Cluster.Nodes) != 1 || c.Cluster.Nodes[0].Name != "z" || c.Cluster.Nodes[0].ReplicaID != 4 || c.Cluster.Nodes[0].AdvertisedAddresses[1].ClientCIDR != "10.0.0.0/8" {
		t.Errorf("environment: %+v", c.Cluster.Nodes)
	}
	contains(t, refused(t, nil, "IGGY_CLUSTER_NODES_900_NAME=z"), "cluster.nodes.900.name")
	c, _ = load(t, nil, "IGGY_HTTP_CORS_ALLOWED_METHODS=[GET, PUT]")
	if !slices.Equal(c.HTTP.CORS.AllowedMethods, []string{"GET", "PUT"}) {
		t.Errorf("list: %q", c.HTTP.CORS.AllowedMethods)
	}
}

func TestEnvironmentFile(t *testing.T) {
	path := file(t, "env", "# comment\nexport IGGY_TCP_ADDRESS='127.0.0.1:7'\nIGGY_SYSTEM_PATH=/from-file\nPATH=/evil\n")
	c, _ := load(t, nil, "IGGY_ENV_PATH="+path, "IGGY_SYSTEM_PATH=/from-process")
	if c.TCP.Address != "127.0.0.1:7" || c.System.Path != "/from-process" {
		t.Errorf("got %s, %s", c.TCP.Address, c.System.Path)
	}
	contains(t, refused(t, nil, "IGGY_ENV_PATH=/does/not/exist"), "/does/not/exist")
}

func TestReferencePageIsCurrent(t *testing.T) {
	want, err := Reference(".")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../deploy/docs/configuration.md")
	if err != nil || string(got) != string(want) {
		t.Errorf("deploy/docs/configuration.md is not current (%v): run make generate", err)
	}
}
