package compose

import (
	"bufio"
	"flag"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/whippet-mq/whippet/tools/bench/verify"
	"github.com/whippet-mq/whippet/tools/cluster/lanes"
)

var upgrades = flag.Int("upgrades", 1, "TestUnderLoad: so often, back and forth")

// upgradeAll replaces containers by others of another build, one after the other. Connections to a front-door that
// is replaced end, and nothing else.
func (l *loaded) upgradeAll() {
	l.t.Helper()
	begun := time.Now()
	services := []string{"front-door-0", "partition-replica"}
	if *everything {
		services = nil // all
	}
	var done []replaced
	for n := range *upgrades {
		done = append(done, l.upgrade([]string{newVersion, oldVersion}[n%2], services)...)
	}
	ended := 0
	for _, d := range l.recorder.Disturbances() {
		switch {
		case d.At.Before(begun): // it is one of the blows
		case d.Broken && l.expected(done, &d):
			ended++
		default:
			l.t.Errorf("%v, %s", &d, during(done, d.At))
		}
	}
	l.t.Logf("%d containers replaced, %d requests met the end of their connection to a front-door", len(done), ended)
}

// replaced is one container that made room for another.
type replaced struct {
	name     string
	from, to time.Time
}

// upgrade runs deploy/compose/run upgrade while steady load looks on.
func (l *loaded) upgrade(version string, services []string) []replaced {
	l.t.Helper()
	steady := l.lanes()
	steady.Start(l.t.Context())
	begun := time.Now()
	done := l.replace(version, services)
	end := time.Now()
	elapse(*window)
	steady.Still()
	l.t.Logf("to %s: %d containers in %v", version, len(done), since(begun))
	for _, r := range done {
		l.t.Logf("%-45s %v", r.name, r.to.Sub(r.from).Round(100*time.Millisecond))
	}
	for _, c := range l.containers() {
		if len(services) > 0 && !slices.Contains(services, c.service) {
			continue
		}
		if image := c.inspect().Config.Image; c.service != "prometheus" && !strings.HasSuffix(image, ":"+version) {
			l.t.Errorf("%s still has %s", c.name, image)
		}
	}
	for _, kind := range steady.Kinds() {
		seen := steady.Look(kind, lanes.Span{From: begun, To: end})
		l.t.Logf("%-10s %6d answers, longest gap %v, p50 %v, p99 %v, %d errors", kind, seen.Count, seen.Gap.Round(time.Millisecond),
			seen.P50.Round(time.Microsecond), seen.P99.Round(time.Microsecond), seen.Errors)
		if seen.Errors > 0 {
			l.t.Errorf("%s: %d errors, the last: %s", kind, seen.Errors, seen.Word)
		}
		if seen.Gap > gapLimit {
			l.t.Errorf("%s: no answer for %v", kind, seen.Gap)
		}
	}
	return done
}

// replace reads from the upgrade which container it turns to, and when.
func (l *loaded) replace(version string, services []string) (done []replaced) {
	l.t.Helper()
	cmd := exec.Command("deploy/compose/run", append([]string{"upgrade", l.variant}, services...)...)
	cmd.Dir, cmd.Env = root(), environment(append(slices.Clone(l.env), "IMAGE_TAG="+version))
	out, errs := io.Pipe()
	cmd.Stdout, cmd.Stderr = errs, errs
	names := map[string]bool{}
	for _, c := range l.containers() {
		if len(services) == 0 || slices.Contains(services, c.service) {
			names[c.name] = true
		}
	}
	ended := make(chan error, 1)
	go func() { err := cmd.Run(); _ = errs.Close(); ended <- err }()
	text := ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		text += lines.Text() + "\n"
		if now := time.Now(); names[lines.Text()] {
			if n := len(done); n > 0 {
				done[n-1].to = now
			}
			done = append(done, replaced{name: lines.Text(), from: now})
		}
	}
	if err := <-ended; err != nil || len(done) != len(names) {
		l.t.Fatalf("upgrade: %v, %d of %d containers\n%s", err, len(done), len(names), text)
	}
	done[len(done)-1].to = time.Now()
	return done
}

// expected reports whether a connection ended because its front-door was replaced.
func (l *loaded) expected(all []replaced, d *verify.Disturbance) bool {
	for door, address := range l.doors {
		for _, r := range all {
			mine := address == d.Address && strings.Contains(r.name, []string{"front-door-0", "front-door-1"}[door])
			if mine && d.At.After(r.from) && d.Since.Before(r.to) { // many a client notices late
				return true
			}
		}
	}
	return false
}

// during tells what was being replaced.
func during(all []replaced, at time.Time) string {
	for _, r := range all {
		if at.After(r.from) && at.Before(r.to.Add(time.Second)) {
			return at.Sub(r.from).String() + " into the replacement of " + r.name
		}
	}
	return "outside of any replacement"
}
