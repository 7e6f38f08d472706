package compose

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// TestDocs runs every command of the page about compose, one after the other in one shell, with other names and
// ports.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(), "deploy/docs/compose.md"))
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	script.WriteString("set -euo pipefail\n")
	commands := 0
	for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
		script.WriteString(block[1])
		commands += strings.Count(block[1], "\n")
	}
	if commands < 15 {
		t.Fatalf("%d commands found", commands)
	}
	if !*everything {
		t.Skipf("%d commands are run with -all", commands)
	}
	p := newProject(t, "")
	images(t, oldVersion)
	for _, variant := range []string{"-small", "-standalone", "-tls"} {
		t.Cleanup(func() { _, _ = command(p.env, "deploy/compose/run", "down", strings.TrimPrefix(variant, "-")) })
	}
	cmd := exec.Command("bash", "-x", "-c", p.adapt(script.String()))
	cmd.Dir, cmd.Env = root(), environment(append(p.env, "VERSION="+oldVersion, "IMAGE_TAG="+oldVersion, "BIN="+binaries(oldVersion)))
	out, err := cmd.CombinedOutput()
	if t.Logf("%d commands\n%s", commands, out); err != nil {
		t.Error(err)
	}
	if left := p.leftovers(); len(left) > 0 {
		t.Logf("left at the end of the page, as it says: %d", len(left))
	}
}

// adapt puts the ports and files of this project in place of the default ones.
func (p *project) adapt(script string) string {
	with := []string{
		"bin/whippet ", binaries(oldVersion) + "/whippet ",
		"127.0.0.1:8090", p.address("FRONT_DOOR_0_TCP"), "127.0.0.1:8190", p.address("FRONT_DOOR_1_TCP"), "127.0.0.1:4222", p.address("NATS_PORT"),
		"deploy/compose/secrets", p.knob("SECRETS"), "deploy/compose/certificates", p.knob("CERTIFICATES"),
		"VERSION=next", "VERSION=" + newVersion + " BIN=" + binaries(newVersion), "IMAGE_TAG=next", "IMAGE_TAG=" + newVersion,
	}
	if _, err := docker("compose", "version"); err != nil {
		with = append(with, "docker compose", "docker-compose")
	}
	return strings.NewReplacer(with...).Replace(script)
}
