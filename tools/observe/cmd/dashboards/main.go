// Command dashboards writes the dashboards into a directory.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/whippet-mq/whippet/tools/observe/dashboard"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: dashboards DIRECTORY")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(dir string) error {
	for _, d := range dashboard.All() {
		text, err := d.Grafana()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, d.File+".json"), text, 0o644); err != nil { //nolint:gosec // to be read by Grafana's user
			return err
		}
	}
	return nil
}
