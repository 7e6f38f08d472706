package node

import (
	"context"
	"os"

	"github.com/whippet-mq/whippet/libs/service"
)

// Roles are what a process does.
type Roles struct{ FrontDoor, Metadata, Partition bool }

var allRoles = Roles{FrontDoor: true, Metadata: true, Partition: true}

// slots reports whether several processes of these roles may share a volume.
func (r Roles) slots() bool { return r == Roles{Partition: true} }

// ops is where the ops endpoint stands by default.
func (r Roles) ops() string {
	switch r {
	case Roles{FrontDoor: true}:
		return "127.0.0.1:9191"
	case Roles{Metadata: true}:
		return "127.0.0.1:9192"
	case Roles{Partition: true}:
		return "127.0.0.1:9193"
	}
	return "" // that of the configuration
}

// Main runs a process with all roles and ends with its exit code.
func Main(name, about string) { MainOf(name, about, allRoles) }

// MainOf runs a process of a cluster with some of the roles and ends with its exit code.
func MainOf(name, about string, roles Roles) {
	program := service.Program{
		Name: name, About: about, OpsAddress: roles.ops(),
		Serve: func(ctx context.Context, r *service.Runtime) error { return serve(ctx, r, roles) },
	}
	os.Exit(service.Run(context.Background(), program, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}
