package compose

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// needEngine ends a test that cannot do its work here: loudly, and as a failure where it must be able to.
func needEngine(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts containers")
	}
	if err := engine(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("no Docker engine for tests that need one: %v", err)
		}
		t.Skipf("NOT TESTED, no Docker engine: %v", err)
	}
}

// engine looks for what all tests here need, once.
var engine = sync.OnceValue(func() error {
	if os.Getuid() != 0 {
		return errors.New("not root: the tests look into containers")
	}
	if _, err := docker("version"); err != nil {
		return err
	}
	if _, err := exec.LookPath("docker-compose"); err == nil {
		return nil
	}
	_, err := docker("compose", "version")
	return err
})

// docker runs one docker command and returns what it printed.
func docker(args ...string) (string, error) { return command(nil, "docker", args...) }

// command runs a program at the root of the repository, with additions to the environment.
func command(env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = root(), &out, &errs
	cmd.Env = environment(env)
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, out.String(), errs.String())
	}
	return out.String(), nil
}

// environment is that of this process with additions, without settings of a cluster of whoever runs the test.
func environment(more []string) (env []string) {
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "COMPOSE_") && !strings.HasPrefix(kv, "MAKE") && !strings.HasPrefix(kv, "MFLAGS") {
			env = append(env, kv)
		}
	}
	return append(env, more...)
}

// root is the directory of the repository.
func root() string {
	dir, err := filepath.Abs("../..")
	if err != nil {
		panic(err) // there is no working directory
	}
	return dir
}

// Versions of the images the tests use: the same sources with another name.
const (
	oldVersion = "test-1"
	newVersion = "test-2"
)

// images builds the images of a version, once.
func images(t *testing.T, version string) (out string) {
	t.Helper()
	once := built[version]
	out, err := once()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var built = map[string]func() (string, error){
	oldVersion: sync.OnceValues(func() (string, error) { return build(oldVersion) }),
	newVersion: sync.OnceValues(func() (string, error) { return build(newVersion) }),
}

// binaries is where the binaries of a version are, from the root of the repository.
func binaries(version string) string { return filepath.Join(".cache", "compose", version) }

func build(version string) (string, error) {
	return command(nil, "make", "--no-print-directory", "images", "VERSION="+version, "BIN="+binaries(version))
}
