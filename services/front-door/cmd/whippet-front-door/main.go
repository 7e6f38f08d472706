// Command whippet-front-door is one of the three services of a cluster: the clients' side of a Whippet cluster: listeners, login and routing.
package main

import "github.com/whippet-mq/whippet/services/node"

func main() {
	node.MainOf("whippet-front-door", "the clients' side of a Whippet cluster: listeners, login and routing", node.Roles{FrontDoor: true})
}
