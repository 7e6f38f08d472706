package operations

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/whippet-mq/whippet/libs/control"
	"github.com/whippet-mq/whippet/tools/client"
	"github.com/whippet-mq/whippet/tools/process"
)

// natsLimit is how long anything of the control plane may take on a busy machine.
const natsLimit = time.Minute

var nats struct {
	sync.Once
	bin string
	err error
}

// natsServer runs a NATS server with the files of deploy/nats, as an operator would set it up, and returns its
// address and the directory with the passwords. edit may change the files of the configuration before.
func natsServer(t *testing.T, config string, env []string, edit func(string) string) (address, secrets string) {
	t.Helper()
	nats.Do(func() { nats.bin, nats.err = process.BuildNATS(filepath.Dir(serverBinary)) })
	if nats.err != nil {
		t.Fatal(nats.err)
	}
	dir := t.TempDir()
	if out, err := exec.Command("../../deploy/nats/passwords", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, from := range map[string]string{"nats-server.conf": "../../deploy/nats", "tls.conf": "../../deploy/nats", "passwords.conf": dir} {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		if edit != nil {
			text = []byte(edit(string(text)))
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(nats.bin, "--config", filepath.Join(dir, config), "--addr", "127.0.0.1", "--port", "-1", "--http_port", "-1", "--ports_file_dir", dir)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), env...), log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	var found struct{ NATS []string }
	await(t, "the NATS server", func() bool {
		select {
		case <-ended:
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("the NATS server ended:\n%s", text)
		default:
		}
		files, _ := filepath.Glob(filepath.Join(dir, "*.ports"))
		if len(files) == 0 {
			return false
		}
		text, err := os.ReadFile(files[0])
		return err == nil && json.Unmarshal(text, &found) == nil && len(found.NATS) > 0
	})
	_, address, _ = strings.Cut(found.NATS[0], "://")
	return address, dir
}

// await looks until something is so.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for deadline := time.Now().Add(natsLimit); !so(); <-look.C {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, natsLimit)
		}
	}
}

// as are the options of one of the users of deploy/nats.
func as(t *testing.T, user, address, secrets string) control.NATSOptions {
	t.Helper()
	password, err := os.ReadFile(filepath.Join(secrets, "nats-"+user))
	if err != nil {
		t.Fatal(err)
	}
	return control.NATSOptions{URL: "nats://" + address, User: user, Password: strings.TrimSpace(string(password)), Name: user}
}

func dialNATS(t *testing.T, o control.NATSOptions) *control.NATS {
	t.Helper()
	bus, err := control.DialNATS(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(bus.Close)
	return bus
}

// lines is a log that a test looks into.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) has(word string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), word)
}

// TestNATSRoles shows that each role may say what is its own and nothing else, and read nothing; and that an operator
// reads everything and says nothing.
func TestNATSRoles(t *testing.T) {
	address, secrets := natsServer(t, "nats-server.conf", nil, nil)
	reader := dialNATS(t, as(t, "operator", address, secrets))
	heard, err := reader.Subscribe(control.All(""))
	if err != nil {
		t.Fatal(err)
	}
	subject := func(role string) string {
		s := control.Source{Cluster: "my cluster", Role: role, Process: "p"}
		return s.Subject(control.ChannelView)
	}
	for _, role := range append([]string{"operator"}, control.Roles...) {
		log := &lines{}
		o := as(t, role, address, secrets)
		o.Log = hclog.New(&hclog.LoggerOptions{Output: log})
		bus := dialNATS(t, o)
		own := subject(role)
		for _, other := range append([]string{"whippet.v1", "whippet.v1.c." + role, "whippet.v2.c." + role + ".p.view", "other", "$SYS.REQ.USER.INFO"}, subjects(subject)...) {
			if other != own {
				if err := bus.Publish(other, []byte("forbidden")); err != nil {
					t.Fatal(err)
				}
			}
		}
		if role == "operator" {
			await(t, "a complaint about the operator", func() bool { return log.has("Permissions Violation for Publish") })
			continue
		}
		if err := bus.Publish(own, []byte(role)); err != nil {
			t.Fatal(err)
		}
		select {
		case d := <-heard.C:
			if d.Subject != own || string(d.Payload) != role {
				t.Errorf("%s has published %q on %s", role, d.Payload, d.Subject)
			}
		case <-time.After(natsLimit):
			t.Fatalf("%s can not publish on %s", role, own)
		}
		quiet := &lines{}
		o.Log = hclog.New(&hclog.LoggerOptions{Output: quiet})
		if _, err := dialNATS(t, o).Subscribe(control.All("")); err != nil {
			t.Fatal(err)
		}
		await(t, role+" is told that it may not read", func() bool { return quiet.has("Permissions Violation for Subscription") })
	}
	for want, o := range map[string]control.NATSOptions{
		"Authorization Violation":  {URL: "nats://" + address},
		"Authorization Violation ": {URL: "nats://" + address, User: "operator", Password: "wrong"},
		"nkeys not supported":      {URL: "nats://" + address, Seed: userSeed},
	} {
		if bus, err := control.DialNATS(o); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("user %q is let in: %v, %v", o.User, bus, err)
		}
	}
}

func subjects(of func(role string) string) (all []string) {
	for _, role := range control.Roles {
		all = append(all, of(role))
	}
	return all
}

// A key pair of a user, for tests.
const (
	userSeed   = "SUAG5AHYSZYSIVLTA3ZBXJ5FGE4IJV3WUVV3OQR6I2CABWDAT2JNN4YDJQ"
	userPublic = "UAXQKS4AD3BDA2TNPITABBUFLIJ4S5DCRAPDW3DNYYMRJF3BACPJC6PL"
)

// TestNATSKey puts an nkey in the place of a user and its password, as the page about the control plane says.
func TestNATSKey(t *testing.T) {
	password := regexp.MustCompile(`(?m)^password_metadata: .*$`)
	address, secrets := natsServer(t, "nats-server.conf", nil, func(config string) string {
		config = strings.Replace(config, `user: "metadata", password: $password_metadata`, `nkey: "`+userPublic+`"`, 1)
		return password.ReplaceAllString(config, "")
	})
	heard, err := dialNATS(t, as(t, "operator", address, secrets)).Subscribe(control.All(""))
	if err != nil {
		t.Fatal(err)
	}
	bus := dialNATS(t, control.NATSOptions{URL: "nats://" + address, Seed: userSeed + "\n"})
	for _, subject := range []string{"whippet.v1.c.partition.p.view", "whippet.v1.c.metadata.p.view"} {
		if err := bus.Publish(subject, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if d := <-heard.C; d.Subject != "whippet.v1.c.metadata.p.view" {
		t.Errorf("heard %s", d.Subject)
	}
}

// TestNATSTLS shows that the server with TLS takes nobody in plain, and that a process takes no server whose
// certificate is of another authority.
func TestNATSTLS(t *testing.T) {
	dir := t.TempDir()
	authority, by := issue(t, dir, "authority", &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil, nil)
	issue(t, dir, "other", &x509.Certificate{
		Subject: pkix.Name{CommonName: "other"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil, nil)
	issue(t, dir, "nats", &x509.Certificate{
		Subject: pkix.Name{CommonName: "nats"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, authority, by)
	address, secrets := natsServer(t, "tls.conf", []string{
		"NATS_CERT_FILE=" + filepath.Join(dir, "nats.pem"), "NATS_KEY_FILE=" + filepath.Join(dir, "nats-key.pem"),
	}, nil)
	o := as(t, "operator", address, secrets)
	if _, err := control.DialNATS(o); err == nil {
		t.Error("a server is trusted without its authority")
	}
	o.CAFile = filepath.Join(dir, "other.pem")
	if _, err := control.DialNATS(o); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a server of another authority is trusted: %v", err)
	}
	o.CAFile = filepath.Join(dir, "authority.pem")
	dialNATS(t, o)

	plain, secrets := natsServer(t, "nats-server.conf", nil, nil)
	o = as(t, "operator", plain, secrets)
	o.CAFile = filepath.Join(dir, "authority.pem")
	if _, err := control.DialNATS(o); err == nil {
		t.Error("a server in plain is taken although an authority is given")
	}
}

// TestServerOverNATS shows a server that tells an operator what happens, with its password from a file, and that a
// NATS server that refuses it, or is not there, changes nothing.
func TestServerOverNATS(t *testing.T) {
	address, secrets := natsServer(t, "nats-server.conf", nil, nil)
	heard, err := dialNATS(t, as(t, "operator", address, secrets)).Subscribe(control.All("my.cluster"))
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, t.TempDir(), map[string]string{
		"WHIPPET_NATS_URL": "nats://" + address, "WHIPPET_NATS_USER": "server",
		"WHIPPET_NATS_PASSWORD_FILE": filepath.Join(secrets, "nats-server"), "WHIPPET_CLUSTER_NAME": "my.cluster",
	})
	await := func(what string, found func(*control.Message) bool) {
		t.Helper()
		for limit := time.After(natsLimit); ; {
			select {
			case d := <-heard.C:
				m, err := control.Decode(d.Payload)
				if err != nil || m.Source.Cluster != "my.cluster" || m.Source.Role != control.RoleServer {
					t.Fatalf("%+v, %v", m, err)
				}
				if found(&m) {
					return
				}
			case <-limit:
				t.Fatalf("%s: not heard", what)
			}
		}
	}
	told := map[control.Kind]bool{} // a message may tell of several
	hear := func(kind control.Kind) {
		t.Helper()
		if !told[kind] {
			await(string(kind), func(m *control.Message) bool {
				for _, e := range m.Events {
					told[e.Kind] = true
				}
				return told[kind]
			})
		}
	}
	hear(control.Starting)
	hear(control.Ready)
	if _, err := client.Dial(t.Context(), client.Options{Address: s.Address(), Username: "iggy", Password: "wrong"}); err == nil {
		t.Error("a wrong password is right")
	}
	hear(control.Evicted)
	await("figures", func(m *control.Message) bool { return m.Metrics != nil && m.Metrics.Memory > 0 })
	if _, scraped := s.ops("/metrics"); !strings.Contains(scraped, "whippet_control_connected 1") {
		t.Error("the metrics do not say that it is connected")
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	hear(control.Stopping)
	password, _ := os.ReadFile(filepath.Join(secrets, "nats-server"))
	current, _ := os.ReadFile(filepath.Join(s.Data(), "runtime", "current_config.toml"))
	log, _ := os.ReadFile(s.Log())
	if secret := strings.TrimSpace(string(password)); strings.Contains(string(log)+string(current), secret) {
		t.Error("the password of NATS is in the log or in the published configuration")
	}

	for _, env := range []map[string]string{
		{"WHIPPET_NATS_URL": "nats://" + address, "WHIPPET_NATS_USER": "server", "WHIPPET_NATS_PASSWORD": "wrong"},
		{"WHIPPET_NATS_URL": "nats://127.0.0.1:1"},
	} {
		s := start(t, t.TempDir(), env)
		c := s.connect("iggy", "iggy")
		fill(t, c, 10)
		expect(t, c, 10)
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		log, _ := os.ReadFile(s.Log())
		contains(t, string(log), "control plane does not work")
	}
}

// TestBadNATSSettings shows that a setting that can never work ends the start with status 2, and without a secret in
// the message.
func TestBadNATSSettings(t *testing.T) {
	for _, c := range []struct{ env, says string }{
		{"WHIPPET_NATS_URL=nats://server:hidden@127.0.0.1:4222", "holds no credentials"},
		{"WHIPPET_NATS_URL=http://127.0.0.1:4222", "nats://host:port"},
		{"WHIPPET_NATS_NKEY=hidden", "seed of a user"},
		{"WHIPPET_NATS_NKEY=" + userPublic, "seed of a user"},
		{"WHIPPET_NATS_CA_FILE=/does/not/exist", "/does/not/exist"},
	} {
		env := []string{c.env}
		if !strings.HasPrefix(c.env, "WHIPPET_NATS_URL") {
			env = append(env, "WHIPPET_NATS_URL=nats://127.0.0.1:4222")
		}
		code, out := run(t, env)
		if code != 2 || !strings.Contains(out, c.says) || strings.Contains(out, "hidden") {
			t.Errorf("%s: status %d\n%s", c.env, code, out)
		}
	}
}
