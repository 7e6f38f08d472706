package node

import (
	"strings"
	"testing"

	"github.com/whippet-mq/whippet/libs/service"
	"github.com/whippet-mq/whippet/libs/wire"
)

// TestDamagedMetadataIsAcceptedByTheOperator: metadata that lost ops is served read-only, over any
// number of starts, until the operator says that what is left is the whole; then it is.
func TestDamagedMetadataIsAcceptedByTheOperator(t *testing.T) {
	for _, all := range []bool{false, true} {
		base, x := matrixDisk(t, false)
		for _, f := range base.Files() {
			switch {
			case !strings.HasPrefix(f, "metadata/"):
			case all: // not a trace is left
				base.Drop(f)
			case strings.Contains(f, "metadata/wal-"):
				base.Corrupt(f, func(b []byte) []byte { b[900] ^= 4; return b })
			case strings.Contains(f, "checkpoint-"), strings.Contains(f, "copy-"):
				base.Corrupt(f, func(b []byte) []byte { b[500] ^= 4; return b })
			}
		}
		create := wire.CreateStreamRequest{Name: []byte("new")}.Append(nil)
		for life := range 3 {
			r := mustBoot(t, base, nil)
			r.asked = x.requests + 1000*uint64(life)
			if r.metadata.Damaged() == nil || r.metric("whippet_metadata_damaged") != 1 {
				t.Fatalf("all %v, life %d: damage is forgotten\n%s", all, life, r.said)
			}
			if a := r.register(); !a.ok() {
				t.Fatalf("all %v, life %d: login: %v", all, life, a)
			}
			if a := r.change(wire.OpCreateStream, create); a.status != wire.CodeStateFileCorrupted {
				t.Fatalf("all %v, life %d: a change ends with %v", all, life, a)
			}
			if life == 1 {
				base.Kill()
			} else if err := r.halt(); err != nil {
				t.Fatal(err)
			}
		}
		accept := func(c *service.Config) { c.AcceptMetadataLoss = true }
		for life, change := range []func(*service.Config){accept, nil} {
			r := mustBoot(t, base, change)
			r.asked = x.requests + 10_000 + 1000*uint64(life)
			if r.metadata.Damaged() != nil {
				t.Fatalf("all %v, life %d after acceptance: %v", all, life, r.metadata.Damaged())
			}
			if a := r.register(); !a.ok() {
				t.Fatalf("all %v: login: %v", all, a)
			}
			if a := r.change(wire.OpCreateStream, create); a.ok() != (life == 0) {
				t.Fatalf("all %v, life %d after acceptance: create stream: %v", all, life, a)
			}
			base.Kill()
		}
	}
}
