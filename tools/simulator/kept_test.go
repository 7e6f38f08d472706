package simulator

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// TestKeptSeeds repeats every run that ever failed.
func TestKeptSeeds(t *testing.T) {
	files, err := filepath.Glob("testdata/seeds/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no kept seeds", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		o, err := ParseOptions(string(text))
		if err != nil {
			t.Fatal(file, err)
		}
		if r := Run(o, nil); !r.Passed() {
			t.Errorf("%s: %v", file, &r)
		}
	}
}

// TestOptions reads back what a failure prints, and keeps a failed run as a file.
func TestOptions(t *testing.T) {
	o := Options{Seed: 7, Profile: Power, Without: []Fault{Loss, Wipe}, Length: 1234, Nodes: 3}
	dir := t.TempDir()
	if err := Keep(dir, &Result{Options: o, Violation: &Violation{Rule: "S1", Detail: "two\nlines"}}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "power-7-s1.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ParseOptions(string(text)); err != nil || !reflect.DeepEqual(got, o) {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", "replay", "replay x", "run 1", "replay 1 --colour red", "replay 1 --without nothing"} {
		if _, err := ParseOptions(bad); err == nil {
			t.Errorf("%q is a run", bad)
		}
	}
}
