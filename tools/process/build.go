package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Build compiles the server of this repository into dir and returns the path of the binary. It is
// for tests: it needs the source tree and the Go tool. Extra flags go to the compiler.
func Build(dir string, flags ...string) (string, error) {
	root, err := repository()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "whippet-server")
	args := append(append([]string{"build", "-o", bin}, flags...), "./server")
	cmd := exec.Command("go", args...)
	cmd.Dir = filepath.Join(root, "services")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the server: %w\n%s", err, out)
	}
	return bin, nil
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
