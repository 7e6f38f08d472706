package layout

import (
	"slices"
	"strings"
	"testing"
)

// deterministic are the packages that a simulator owns: the same inputs give the same outputs, so
// clocks, random numbers, files and sockets come in as arguments.
var deterministic = []string{"libs/wire", "libs/vsr", "libs/vsr/pulse", "libs/metadata"}

// impure are the standard packages that bring time, chance or the outside world in.
var impure = []string{"time", "os", "net", "math/rand", "crypto/rand", "syscall", "runtime", "unsafe", "reflect", "log", "testing"}

// Imports point downwards: services use libs, tools use both, nothing the other way.
func TestImportsPointDownwards(t *testing.T) {
	above := map[string][]string{"libs": {"services", "tools"}, "services": {"tools"}}
	for _, p := range all(t) {
		module, _, _ := strings.Cut(p.dir, "/")
		for _, f := range p.files {
			for _, path := range f.imports() {
				ours, isOurs := strings.CutPrefix(path, modulePath)
				target, _, _ := strings.Cut(ours, "/")
				if isOurs && !f.test && slices.Contains(above[module], target) {
					t.Errorf("%s imports %s", f.path, ours)
				}
			}
		}
	}
}

// The deterministic packages import nothing of ours but wire, and nothing impure.
func TestDeterministicImports(t *testing.T) {
	seen := 0
	for _, p := range all(t) {
		if !slices.Contains(deterministic, p.dir) {
			continue
		}
		seen++
		for _, f := range p.files {
			if f.test {
				continue
			}
			for _, path := range f.imports() {
				if ours, isOurs := strings.CutPrefix(path, modulePath); isOurs && ours != "libs/wire" {
					t.Errorf("%s imports %s", f.path, ours)
				}
				if slices.ContainsFunc(impure, func(bad string) bool { return path == bad || strings.HasPrefix(path, bad+"/") }) {
					t.Errorf("%s imports %q", f.path, path)
				}
			}
		}
	}
	if seen != len(deterministic) {
		t.Errorf("%d of %d packages found", seen, len(deterministic))
	}
}
