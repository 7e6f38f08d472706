// Command whippet-metadata-replica is one of the three services of a cluster: keeps streams, users and groups of a Whippet cluster.
package main

import "github.com/whippet-mq/whippet/services/node"

func main() {
	node.MainOf("whippet-metadata-replica", "keeps streams, users and groups of a Whippet cluster", node.Roles{Metadata: true})
}
