package metadatareplica

import "github.com/whippet-mq/whippet/libs/loop"

// Group is the metadata group as its loop drives it. Its published role and view are for any goroutine.
func (r *Replica) Group() *loop.Group { return r.group }
