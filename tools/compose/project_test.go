package compose

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/tools/client"
)

const (
	password  = "iggy"
	readyTime = 2 * time.Minute // generous: machines of tests are busy
)

// project is a cluster of compose.yaml, or of a variant of it.
type project struct {
	t       *testing.T
	variant string
	env     []string
	ports   map[string]string // knob -> port
}

// published are the knobs of ports.
var published = []string{
	"FRONT_DOOR_0_TCP", "FRONT_DOOR_0_QUIC", "FRONT_DOOR_0_WEBSOCKET", "FRONT_DOOR_0_HTTP",
	"FRONT_DOOR_1_TCP", "FRONT_DOOR_1_QUIC", "FRONT_DOOR_1_WEBSOCKET", "FRONT_DOOR_1_HTTP",
	"NATS_PORT", "PROMETHEUS_PORT", "GRAFANA_PORT",
}

// newProject plans a cluster. Whatever becomes of it is gone when the test ends.
func newProject(t *testing.T, variant string) *project {
	t.Helper()
	needEngine(t)
	p := &project{t: t, variant: variant, ports: freePorts()}
	secrets := filepath.Join(t.TempDir(), "secrets")
	if err := os.Mkdir(secrets, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(secrets, "root-password"), []byte(password+"\n"), 0o444); err != nil {
		t.Fatal(err)
	}
	p.env = []string{
		fmt.Sprintf("COMPOSE_PROJECT_NAME=whippet-test-%d", rand.Uint32()), "SECRETS=" + secrets,
		"CERTIFICATES=" + filepath.Join(secrets, "certificates"), "HEALTH_INTERVAL=1s", "READY_TIME=120",
	}
	for knob, port := range p.ports {
		p.env = append(p.env, knob+"="+port)
	}
	t.Cleanup(func() {
		if t.Failed() {
			p.lastWords()
		}
		p.run("down", oldVersion)
	})
	return p
}

// name is that of the project, as docker labels what belongs to it.
func (p *project) name() string {
	name := strings.TrimPrefix(p.env[0], "COMPOSE_PROJECT_NAME=")
	if p.variant != "" {
		name += "-" + p.variant
	}
	return name
}

// run calls deploy/compose/run.
func (p *project) run(action, version string) string {
	p.t.Helper()
	env := append(slices.Clone(p.env), "IMAGE_TAG="+version, "BIN="+binaries(version))
	out, err := command(env, "deploy/compose/run", action, p.variant)
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

// up starts the cluster with the images of a version.
func (p *project) up(version string) {
	p.t.Helper()
	images(p.t, version)
	p.run("up", version)
}

// freePorts finds a free port for each knob, below the range from which the system takes ports by itself.
func freePorts() map[string]string {
	ports, taken := map[string]string{}, map[string]bool{}
	for _, knob := range published {
		for ports[knob] == "" {
			port := fmt.Sprint(20000 + rand.IntN(10000))
			if !taken[port] && free(net.JoinHostPort("127.0.0.1", port)) {
				ports[knob], taken[port] = port, true
			}
		}
	}
	return ports
}

func free(address string) bool {
	tcp, err := net.Listen("tcp", address)
	if err != nil {
		return false
	}
	defer tcp.Close()
	udp, err := net.ListenPacket("udp", address)
	if err != nil {
		return false
	}
	return udp.Close() == nil
}

// address is where a published port is.
func (p *project) address(knob string) string { return net.JoinHostPort("127.0.0.1", p.ports[knob]) }

// doors are the addresses of the front-doors.
func (p *project) doors() []string {
	return []string{p.address("FRONT_DOOR_0_TCP"), p.address("FRONT_DOOR_1_TCP")}
}

// connect logs in at an address.
func (p *project) connect(address string) *client.Client {
	p.t.Helper()
	var c *client.Client
	p.await("a login at "+address, func() (in bool) {
		var err error
		c, err = client.Dial(p.t.Context(), client.Options{Address: address, Username: "iggy", Password: password, RetryFor: 30 * time.Second})
		return err == nil
	})
	p.t.Cleanup(c.Close)
	return c
}

// await returns when a condition holds, or ends the test.
func (p *project) await(what string, holds func() bool) {
	p.t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(readyTime); !holds(); <-ticker.C {
		if time.Now().After(deadline) {
			p.t.Fatalf("not within %v: %s", readyTime, what)
		}
	}
}

// leftovers is what docker has of this project: containers, networks and volumes.
func (p *project) leftovers() (all []string) {
	p.t.Helper()
	label := "label=com.docker.compose.project=" + p.name()
	for _, kind := range [][]string{{"ps", "-a"}, {"network", "ls"}, {"volume", "ls"}} {
		out, err := docker(append(kind, "-q", "--filter", label)...)
		if err != nil {
			p.t.Fatal(err)
		}
		for id := range strings.FieldsSeq(out) {
			all = append(all, kind[0]+" "+id)
		}
	}
	return all
}

// lastWords shows what became of the containers of a test that failed.
func (p *project) lastWords() {
	for _, c := range p.containers() {
		out, err := docker("logs", "--tail", "15", c.id)
		p.t.Logf("%s\n%s%v", c.name, out, err)
	}
}

// secret is what a secret of this project holds.
func (p *project) secret(name string) string {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.knob("SECRETS"), name))
	if err != nil {
		p.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}
