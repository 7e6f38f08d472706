package service

import (
	"fmt"
	"runtime"
)

// Version and Commit name the build; the Makefile sets them at link time.
var (
	Version = "development"
	Commit  = "unknown"
)

// VersionLine is what --version prints.
func VersionLine(program string) string {
	return fmt.Sprintf("%s %s (commit %s, %s, %s/%s)", program, Version, Commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
