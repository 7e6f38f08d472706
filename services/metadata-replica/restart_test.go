package metadatareplica

import (
	"bytes"
	"strings"
	"testing"

	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// TestDamageOutlivesLogins: the record of an acknowledged change is unreadable. Logins of the next life
// take its place in the log; the life after that must still know that something is missing.
func TestDamageOutlivesLogins(t *testing.T) {
	mem := vfs.NewMem(1)
	r := open(t, mem)
	client := wire.U128{Lo: 1}
	session := serve(t, r, login(client)).Op
	serve(t, r, createStream(client, session, 1, "kept"))
	serve(t, r, createStream(client, session, 2, "lost"))
	mem.Kill()
	mem.Restart()
	for _, name := range mem.Files() {
		if strings.HasPrefix(name, logDir+"/wal") {
			mem.Corrupt(name, func(b []byte) []byte {
				if at := bytes.Index(b, []byte("lost")); at >= 0 {
					b[at] ^= 1
				}
				return b
			})
		}
	}
	for life := range 3 {
		r = open(t, mem)
		if r.Damaged() == nil {
			t.Fatalf("life %d after the damage does not know of it", life+1)
		}
		serve(t, r, login(wire.U128{Lo: uint64(life) + 2}))
		if c := createStream(client, session, 3, "on a gap"); true {
			if r.Serve(c); c.Status != wire.CodeStateFileCorrupted {
				t.Fatalf("a change on a gap: status %v", c.Status)
			}
		}
		if r.View().Stream(wire.NamedID("kept")) == nil {
			t.Errorf("life %d does not serve what is whole", life+1)
		}
		mem.Kill()
		mem.Restart()
	}
}

// TestLogoutOfALostSessionSparesTheNewOne: the session found at start is logged out when nobody has
// claimed it, but not while its client's new login is on its way.
func TestLogoutOfALostSessionSparesTheNewOne(t *testing.T) {
	mem := vfs.NewMem(1)
	client := wire.U128{Lo: 1}
	r := open(t, mem)
	serve(t, r, login(client))
	mem.Kill()
	mem.Restart()
	r = open(t, mem)
	c := login(client)
	r.engine.Do(func() { // both in the turn after this one
		r.Serve(c)
		r.engine.Do(r.logoutUnclaimed)
	})
	succeeded(t, c)
	if got := r.View().Client(client); got == nil || got.Epoch != c.Op {
		t.Error("the new session was logged out in place of the lost one")
	}
	if len(r.unclaimed) != 0 {
		r.engine.Do(r.logoutUnclaimed)
	}
	if len(r.unclaimed) != 0 {
		t.Error("a session that was claimed is still waiting")
	}
}
