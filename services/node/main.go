package node

import (
	"context"
	"os"

	"github.com/whippet-mq/whippet/libs/service"
)

// Main runs a process and ends with its exit code.
func Main(name, about string) {
	program := service.Program{Name: name, About: about, Serve: serve}
	os.Exit(service.Run(context.Background(), program, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}
