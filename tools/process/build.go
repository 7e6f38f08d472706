package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// programs are the server processes by the directory of their main package below services.
var programs = map[string]string{
	"whippet-server":            "server",
	"whippet-front-door":        "front-door/cmd/whippet-front-door",
	"whippet-metadata-replica":  "metadata-replica/cmd/whippet-metadata-replica",
	"whippet-partition-replica": "partition-replica/cmd/whippet-partition-replica",
}

// Build compiles the server of this repository into dir and returns the path of the binary. It is
// for tests: it needs the source tree and the Go tool. Extra flags go to the compiler.
func Build(dir string, flags ...string) (string, error) {
	return filepath.Join(dir, "whippet-server"), build(dir, "whippet-server", flags...)
}

// BuildAll compiles the server and the three services into dir.
func BuildAll(dir string) error {
	for name := range programs {
		if err := build(dir, name); err != nil {
			return err
		}
	}
	return nil
}

// BuildNATS compiles the NATS server, at the version of tools/go.mod, into dir and returns the path of the binary.
func BuildNATS(dir string) (string, error) {
	root, err := repository()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "nats-server")
	cmd := exec.Command("go", "build", "-o", path, "github.com/nats-io/nats-server/v2")
	cmd.Dir = filepath.Join(root, "tools")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build nats-server: %w\n%s", err, out)
	}
	return path, nil
}

func build(dir, program string, flags ...string) error {
	root, err := repository()
	if err != nil {
		return err
	}
	args := append(append([]string{"build", "-o", filepath.Join(dir, program)}, flags...), "./"+programs[program])
	cmd := exec.Command("go", args...)
	cmd.Dir = filepath.Join(root, "services")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", program, err, out)
	}
	return nil
}

// repository walks up to the directory that holds go.work.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("no go.work above the working directory")
		}
		dir = up
	}
}
