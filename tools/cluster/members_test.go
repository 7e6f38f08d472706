package cluster

import (
	"testing"

	"github.com/whippet-mq/whippet/tools/local"
)

// metadataPrimary waits until one member says that it is.
func metadataPrimary(t *testing.T, c *local.Cluster) local.Member {
	t.Helper()
	for t.Context().Err() == nil {
		for _, m := range keepers(c) {
			if metric(c, m, "whippet_metadata_primary") == 1 {
				return m
			}
		}
	}
	t.Fatal("no metadata primary")
	return local.Member{}
}
