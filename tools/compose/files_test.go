package compose

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// forms are the files of each cluster.
var forms = map[string][]string{
	"default":    {"compose.yaml"},
	"tls":        {"compose.yaml", "deploy/compose/tls.yaml"},
	"small":      {"deploy/compose/small.yaml"},
	"standalone": {"deploy/compose/standalone.yaml"},
}

// load reads a form as Compose v2 does.
func load(t *testing.T, form string, env ...string) *types.Project {
	t.Helper()
	var files []string
	for _, f := range forms[form] {
		files = append(files, filepath.Join(root(), f))
	}
	options, err := cli.NewProjectOptions(files, cli.WithWorkingDirectory(root()), cli.WithEnv(env), cli.WithName("test"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := options.LoadProject(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestEveryServiceIsConfined: whatever form, whoever made the image.
func TestEveryServiceIsConfined(t *testing.T) {
	for form := range forms {
		for name, s := range load(t, form).Services {
			user, _, _ := strings.Cut(s.User, ":")
			for what, holds := range map[string]bool{
				"a read-only root file system": s.ReadOnly,
				"no capability":                slices.Equal(s.CapDrop, []string{"ALL"}) && len(s.CapAdd) == 0,
				"no way to gain privileges":    slices.Contains(s.SecurityOpt, "no-new-privileges:true") && !s.Privileged,
				"a user that is not root":      user != "" && user != "0" && user != "root",
				"a bound of memory":            s.MemLimit > 0,
				"a bound of processors":        s.CPUS > 0,
				"a bound of processes":         s.PidsLimit > 0,
				"a health check":               s.HealthCheck != nil && len(s.HealthCheck.Test) > 1,
				"a bound of its log":           s.Logging != nil && s.Logging.Options["max-size"] != "",
				"no secret in its environment": !secretIn(s.Environment),
			} {
				if !holds {
					t.Errorf("%s: %s lacks %s", form, name, what)
				}
			}
			if strings.HasPrefix(s.Image, "whippet/") && s.HealthCheck.Test[1] != "/bin/whippet" {
				t.Errorf("%s: the health check of %s is not ours: %v", form, name, s.HealthCheck.Test)
			}
		}
	}
}

// secretIn finds a secret that is not given as a file.
func secretIn(env types.MappingWithEquals) bool {
	for name := range env {
		secret := strings.Contains(name, "PASSWORD") || strings.HasSuffix(name, "SECRET") || strings.Contains(name, "TOKEN")
		if secret && !strings.HasSuffix(name, "_FILE") {
			return true
		}
	}
	return false
}

// TestPorts: the first front-door is where clients look by default, on the loopback address; the planes between
// processes are on a network that leads nowhere, and are not published.
func TestPorts(t *testing.T) {
	p := load(t, "default")
	want := map[string][]string{
		"front-door-0": {"127.0.0.1:3000->3000/tcp", "127.0.0.1:8080->8080/udp", "127.0.0.1:8090->8090/tcp", "127.0.0.1:8092->8092/tcp"},
		"front-door-1": {"127.0.0.1:3100->3000/tcp", "127.0.0.1:8180->8080/udp", "127.0.0.1:8190->8090/tcp", "127.0.0.1:8192->8092/tcp"},
		"nats":         {"127.0.0.1:4222->4222/tcp"},
		"prometheus":   {"127.0.0.1:9090->9090/tcp"},
		"grafana":      {"127.0.0.1:3200->3000/tcp"},
	}
	got := map[string][]string{}
	for name, s := range p.Services {
		for _, port := range s.Ports {
			got[name] = append(got[name], port.HostIP+":"+port.Published+"->"+targetOf(port))
		}
		slices.Sort(got[name])
		if _, reached := s.Networks["clients"]; reached && want[name] == nil {
			t.Errorf("%s is on the network of clients", name)
		}
	}
	if !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("published: %v", got)
	}
	if !p.Networks["cluster"].Internal {
		t.Error("the network between processes leads elsewhere")
	}
}

func targetOf(p types.ServicePortConfig) string {
	return fmt.Sprintf("%d/%s", p.Target, p.Protocol)
}

var (
	knobUse  = regexp.MustCompile(`\$\{([A-Z0-9_]+):-([^}]*)\}`)
	knobLine = regexp.MustCompile(`^#?([A-Z0-9_]+)=(.*)$`)
)

// TestKnobs: .env has a line for each knob, with the default the files have, and no other; none of them is a
// setting of the services, which read a file of that name too.
func TestKnobs(t *testing.T) {
	used := map[string]string{}
	files, err := filepath.Glob(filepath.Join(root(), "deploy/compose/*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(files, filepath.Join(root(), "compose.yaml")) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range knobUse.FindAllStringSubmatch(string(text), -1) {
			if old, ok := used[m[1]]; ok && old != m[2] {
				t.Errorf("%s is %q by default, and elsewhere %q", m[1], m[2], old)
			}
			used[m[1]] = m[2]
		}
	}
	env, err := os.Open(filepath.Join(root(), ".env"))
	if err != nil {
		t.Fatal(err)
	}
	defer env.Close()
	explained := map[string]string{}
	for lines := bufio.NewScanner(env); lines.Scan(); {
		if m := knobLine.FindStringSubmatch(lines.Text()); m != nil && m[1] != "COMPOSE_PROJECT_NAME" {
			explained[m[1]] = m[2]
		}
	}
	if len(used) < 10 || !maps.Equal(used, explained) {
		t.Errorf("knobs of the files:\n%v\nexplained in .env:\n%v", used, explained)
	}
	for name := range explained {
		if strings.HasPrefix(name, "IGGY_") || strings.HasPrefix(name, "WHIPPET_") {
			t.Errorf("%s in .env would be read by a server that is started here", name)
		}
	}
}

// TestScale: a knob sets the number of partition replicas, and all of them share a volume.
func TestScale(t *testing.T) {
	s := load(t, "default", "PARTITION_REPLICAS=5").Services["partition-replica"]
	if s.Scale == nil || *s.Scale != 5 {
		t.Errorf("scale %v", s.Scale)
	}
	if len(s.Volumes) != 1 || s.Volumes[0].Source != "partitions" || s.Volumes[0].Target != "/data" {
		t.Errorf("volumes %v", s.Volumes)
	}
}

// TestStartOrder: who needs another waits until that is ready; nobody waits for what shows things.
func TestStartOrder(t *testing.T) {
	p := load(t, "default")
	for name, s := range p.Services {
		for on, d := range s.DependsOn {
			if d.Condition != types.ServiceConditionHealthy {
				t.Errorf("%s waits until %s is %s", name, on, d.Condition)
			}
			if on == "nats" || on == "prometheus" || on == "grafana" {
				t.Errorf("%s waits for %s", name, on)
			}
		}
	}
	for name, count := range map[string]int{"partition-replica": 3, "front-door-0": 4, "front-door-1": 4, "metadata-0": 0, "nats": 0} {
		if got := len(p.Services[name].DependsOn); got != count {
			t.Errorf("%s waits for %d services", name, got)
		}
	}
}
