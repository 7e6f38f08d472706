package observe

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/whippet-mq/whippet/tools/observe/dashboard"
)

// rule is a recording or an alert rule.
type rule struct {
	Record, Alert, Expr, For string
	Labels, Annotations      map[string]string
}

func rules(t *testing.T, name string) (all []rule) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deployed, name))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string
			Rules []rule
		}
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) == 0 {
		t.Fatalf("%s has no rules", name)
	}
	return all
}

// TestRules has Prometheus' own tool check the configuration and run the unit tests of the rules, one for
// each alert.
func TestRules(t *testing.T) {
	promtool := tool(t, "promtool")
	for _, args := range [][]string{{"check", "config", "prometheus.yml"}, {"test", "rules", "alerts_test.yml"}} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = deployed
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	tests, err := os.ReadFile(filepath.Join(deployed, "alerts_test.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules(t, "alerts.yml") {
		if !strings.Contains(string(tests), "- alertname: "+r.Alert+"\n") {
			t.Errorf("%s has no unit test in which it fires", r.Alert)
		}
	}
}

// TestGenerated compares the dashboards with their tables.
func TestGenerated(t *testing.T) {
	all := dashboard.All()
	for _, d := range all {
		want, err := d.Grafana()
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("../../deploy/grafana/dashboards", d.File+".json"))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s.json is not what its table says (%v): make generate", d.File, err)
		}
	}
	if files, _ := filepath.Glob("../../deploy/grafana/dashboards/*"); len(files) != len(all) {
		t.Errorf("%d files for %d dashboards", len(files), len(all))
	}
}

const pages = "../../deploy/docs/runbooks"

var section = regexp.MustCompile(`(?m)^## (.+)$`)

// TestRunbooks wants a page for each alert, of the same sections, and none without an alert.
func TestRunbooks(t *testing.T) {
	index, err := os.ReadFile(filepath.Join(pages, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"README.md": true}
	for _, r := range rules(t, "alerts.yml") {
		page := filepath.Base(r.Annotations["runbook"])
		known[page] = true
		if r.Annotations["runbook"] != "docs/runbooks/"+page || r.Labels["severity"] == "" || r.Annotations["summary"] == "" {
			t.Errorf("%s lacks its page, severity or summary", r.Alert)
		}
		text, err := os.ReadFile(filepath.Join(pages, page))
		if err != nil {
			t.Errorf("%s: %v", r.Alert, err)
			continue
		}
		if !strings.HasPrefix(string(text), "# "+r.Alert+"\n") {
			t.Errorf("%s does not begin with the name of %s", page, r.Alert)
		}
		var sections []string
		for _, m := range section.FindAllStringSubmatch(string(text), -1) {
			sections = append(sections, m[1])
		}
		if got := strings.Join(sections, ", "); got != "It means, Users see, Look at, Do" {
			t.Errorf("%s has the sections %s", page, got)
		}
		if !strings.Contains(string(index), "| ["+r.Alert+"]("+page+") |") {
			t.Errorf("README.md does not list %s", r.Alert)
		}
	}
	files, err := os.ReadDir(pages)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !known[f.Name()] {
			t.Errorf("%s is the page of no alert", f.Name())
		}
	}
}
