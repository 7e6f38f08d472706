// Command whippet-server is an all-role node: front-door, metadata replica and partition replica in
// one process, linked without sockets.
package main

import (
	"context"
	"os"

	"github.com/whippet-mq/whippet/libs/service"
)

func main() {
	program := service.Program{
		Name:  "whippet-server",
		About: "a message-streaming broker in one process, for any Apache Iggy client",
		Serve: serve,
	}
	os.Exit(service.Run(context.Background(), program, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}
