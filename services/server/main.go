// Command whippet-server is an all-role node: front-door, metadata replica and partition replica in
// one process, linked without sockets.
package main

import "github.com/whippet-mq/whippet/services/node"

func main() {
	node.Main("whippet-server", "a message-streaming broker in one process, for any Apache Iggy client")
}
