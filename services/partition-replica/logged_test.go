package partitionreplica

import (
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/whippet-mq/whippet/libs/buffer"
	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
	metadatareplica "github.com/whippet-mq/whippet/services/metadata-replica"
)

// unheard is a network in which nobody hears anybody.
type unheard struct{}

func (unheard) Send(uint8, loop.Frame) bool { return false }

// A topic made just before a kill is in the metadata log of a node of a roster, which does not know yet that it is
// committed. The partition comes back with the topic's settings all the same: what it acknowledges, and where its
// segments end, depends on them.
func TestTopicThatIsOnlyLogged(t *testing.T) {
	mem := vfs.NewMem(1)
	w := open(t, mem, false)
	block := wire.AppendOption(nil, wire.OptionSegmentSize, wire.KindString, []byte("1 MiB"))
	block = wire.AppendOption(block, wire.OptionEnforceFsync, wire.KindBool, []byte{1})
	w.change(wire.OpCreateStream, wire.CreateStreamRequest{Name: []byte("s")}.Append(nil))
	w.change(wire.OpCreateTopic, wire.CreateTopicRequest{
		Stream: wire.NamedID("s"), PartitionsCount: 1, Name: []byte("t"), Options: block,
	}.Append(nil))
	w.send(0, "a message")
	id := w.group(0)
	mem.Kill()
	mem.Restart()

	evidence, err := journal.LoadEvidence(mem, ".")
	if err != nil {
		t.Fatal(err)
	}
	votes, _, err := loop.OpenVotes(mem, ".", [16]byte{}, true)
	if err != nil {
		t.Fatal(err)
	}
	engine := loop.EngineOptions{
		Limits: loop.Limits{Pipeline: 32, Queue: 64}, FileSize: 256 << 10, Budget: 8 << 20, Reserve: 256 << 10, Stepped: true,
		Peers: unheard{}, Votes: votes, Evidence: evidence,
	}
	roster := []uint8{0, 1, 2}
	meta, err := metadatareplica.Open(metadatareplica.Config{Nodes: roster, Engine: engine}, metadatareplica.Deps{
		FS: mem, Log: hclog.NewNullLogger(), Registry: prometheus.NewRegistry(),
		Root: func() (metadata.RootUser, error) { return metadata.RootUser{Name: "root", PasswordHash: "none"}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, known := meta.View().PartitionByGroupID(id); known {
		t.Fatal("the topic is known to be committed: the test tests nothing")
	}
	engine.Owner.Loop = 1
	r, err := Open(Config{Roster: roster, Loops: 1, Engine: engine}, Deps{
		FS: mem, Follower: meta, Logged: meta.Logged(), Pool: buffer.NewPool(16 << 20), Log: hclog.NewNullLogger(), Registry: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	p := r.find(id)
	if !p.group.Synced() {
		t.Error("acknowledges what is written")
	}
	if size := p.log.Checkpoint().State.SegmentSize; size != 1<<20 {
		t.Errorf("segments of %d bytes", size)
	}
}
