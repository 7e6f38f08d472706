package compose

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// officialVersion is the released Python SDK that the cluster is tried with.
const officialVersion = "0.9.0"

// TestUpAndDown is what people do first: make up, an official client through the published ports, make down.
func TestUpAndDown(t *testing.T) {
	p := newProject(t, "")
	images(t, oldVersion)
	python, err := command(nil, "tools/clienttests/wheel", officialVersion)
	if err != nil {
		t.Fatal(err)
	}

	begun := time.Now()
	out := p.make("up")
	t.Logf("make up: everything healthy after %v\n%s", since(begun), out)
	for _, c := range p.containers() {
		p.confined(c)
	}

	begun = time.Now()
	out, err = command(nil, strings.TrimSpace(python), "tools/clienttests/wheel.py", p.name(), officialVersion, "containers")
	if t.Logf("official client: %s in %v", strings.TrimSpace(out), since(begun)); err != nil || !strings.Contains(out, " passed, 0 failed") {
		t.Errorf("%v", err)
	}

	begun = time.Now()
	p.make("down")
	left := p.leftovers()
	if t.Logf("make down: everything gone after %v", since(begun)); len(left) > 0 {
		t.Errorf("make down leaves %v", left)
	}
}

// make calls a target as people do, with the knobs of this project.
func (p *project) make(target string) string {
	p.t.Helper()
	out, err := command(append(slices.Clone(p.env), "IMAGE_TAG="+oldVersion), "make", "--no-print-directory", target, "VARIANT="+p.variant, "VERSION="+oldVersion, "BIN="+binaries(oldVersion))
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

func since(begun time.Time) time.Duration { return time.Since(begun).Round(10 * time.Millisecond) }

// confined holds a running container against what the engine was asked for.
func (p *project) confined(c *container) {
	p.t.Helper()
	s := c.inspect()
	h := s.HostConfig
	if !h.ReadonlyRootfs || h.Privileged || len(h.CapDrop) != 1 || h.CapDrop[0] != "ALL" || len(h.SecurityOpt) == 0 ||
		h.Memory == 0 || h.NanoCpus == 0 || h.PidsLimit == 0 || s.Config.User == "" || s.State.Health.Status != "healthy" {
		p.t.Errorf("%s runs as %+v", c.name, s)
	}
}

// TestVariants: the other forms start, serve and go.
func TestVariants(t *testing.T) {
	t.Parallel()
	variants := []string{"small"}
	if *everything {
		variants = append(variants, "standalone")
	}
	for _, variant := range variants {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, variant)
			p.up(oldVersion)
			c := p.connect(p.address("FRONT_DOOR_0_TCP"))
			if _, err := c.CreateStream("first"); err != nil {
				t.Error(err)
			}
			p.sendAndPoll(c, "first")
			p.run("down", oldVersion)
			if left := p.leftovers(); len(left) > 0 {
				t.Errorf("down leaves %v", left)
			}
		})
	}
}

// TestImages: each is small, has nothing but its binaries, and is told by its version.
func TestImages(t *testing.T) {
	needEngine(t)
	t.Logf("make images:\n%s", images(t, oldVersion))
	const limit = 40_000_000 // bytes
	for _, name := range []string{"front-door", "metadata-replica", "partition-replica", "server", "nats", "cli"} {
		image := "whippet/" + name + ":" + oldVersion
		out, err := docker("image", "inspect", "--format", "{{json .}}", image)
		if err != nil {
			t.Fatal(err)
		}
		var i struct {
			Size   int64
			Config struct{ User string }
		}
		if err := json.Unmarshal([]byte(out), &i); err != nil {
			t.Fatal(err)
		}
		if i.Size > limit || i.Size < 1_000_000 || i.Config.User != "65532:65532" {
			t.Errorf("%s: %d bytes, user %q", image, i.Size, i.Config.User)
		}
		if err := exec.Command("docker", "run", "--rm", "--entrypoint", "/bin/sh", image, "-c", "true").Run(); err == nil {
			t.Errorf("%s has a shell", image)
		}
		if out, err := docker("run", "--rm", "--read-only", "--entrypoint", "/bin/whippet", image, "--version"); err != nil || !strings.Contains(out, oldVersion) {
			t.Errorf("%s: version %q, %v", image, out, err)
		}
	}
}
