// Command whippet-partition-replica is one of the three services of a cluster: keeps messages and consumer offsets of a Whippet cluster.
package main

import "github.com/whippet-mq/whippet/services/node"

func main() {
	node.MainOf("whippet-partition-replica", "keeps messages and consumer offsets of a Whippet cluster", node.Roles{Partition: true})
}
