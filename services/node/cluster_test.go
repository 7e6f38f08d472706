package node

import (
	"fmt"
	"testing"

	"github.com/whippet-mq/whippet/libs/service"
)

// TestNodesOfARosterReachEachOther: what a node forwards goes to the service plane of another, which must
// not hide on its loopback interface.
func TestNodesOfARosterReachEachOther(t *testing.T) {
	environ := []string{"IGGY_SYSTEM_PATH=" + t.TempDir(), "IGGY_CLUSTER_ENABLED=true", "WHIPPET_REPLICA_ID=1"}
	for i := range 3 {
		prefix := fmt.Sprintf("IGGY_CLUSTER_NODES_%d_", i)
		environ = append(environ, fmt.Sprintf("%sNAME=n%d", prefix, i), fmt.Sprintf("%sIP=192.0.2.%d", prefix, i+1), fmt.Sprintf("%sREPLICA_ID=%d", prefix, i),
			prefix+"PORTS_TCP=8090", prefix+"PORTS_QUIC=8080", prefix+"PORTS_HTTP=3000", prefix+"PORTS_WEBSOCKET=8092", prefix+"PORTS_TCP_REPLICA=9090")
	}
	for given, want := range map[string]string{"": "192.0.2.2:9091", "198.51.100.1:7": "198.51.100.1:7"} {
		more := environ
		if given != "" {
			more = append(environ[:len(environ):len(environ)], "WHIPPET_SERVICE_ADDRESS="+given)
		}
		config, _, err := service.Load(nil, more)
		if err != nil {
			t.Fatal(err)
		}
		c, err := arrange(config, allRoles)
		if err != nil {
			t.Fatal(err)
		}
		if config.Service.Address != want || c.listen != "192.0.2.2:9090" {
			t.Errorf("given %q: service plane on %s, want %s; replica plane on %s", given, config.Service.Address, want, c.listen)
		}
	}
}
