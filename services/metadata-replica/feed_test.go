package metadatareplica

import (
	"bytes"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/metadata/feed"
	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// inbox keeps the frames a follower was sent.
type inbox struct{ frames [][2][]byte }

func (i *inbox) Send(header, body []byte) bool {
	i.frames = append(i.frames, [2][]byte{header, body})
	return true
}

// pull lets a follower take what is in its inbox and ask for what it lacks, until both are content.
func (i *inbox) pull(t *testing.T, f *metadata.Follower, at *feed.Follower, asks []wire.Header) {
	t.Helper()
	for {
		for n := range asks {
			var err error
			switch h := &asks[n]; h.Command() {
			case wire.CommandRequestPrepares:
				var q wire.RequestPreparesHeader
				if err = q.Decode(h[:]); err == nil {
					err = at.Subscribe(&q)
				}
			case wire.CommandRequestStateTransfer:
				var q wire.RequestStateTransferHeader
				if err = q.Decode(h[:]); err == nil {
					err = at.Transfer(&q)
				}
			case wire.CommandRequestStateChunk:
				var q wire.RequestStateChunkHeader
				if err = q.Decode(h[:]); err == nil {
					err = at.Chunk(&q)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if len(i.frames) == 0 {
			return
		}
		frame := i.frames[0]
		i.frames = i.frames[1:]
		var err error
		if asks, _, err = f.Frame((*wire.Header)(frame[0]), frame[1], nil); err != nil {
			t.Fatal(err)
		}
	}
}

// What the replica applies reaches a follower as the same state, across a restart of the replica.
func TestFeed(t *testing.T) {
	mem := vfs.NewMem(1)
	r := openWith(t, mem, func(c *Config) { c.Feed = true })
	client := wire.U128{Lo: 1}
	session := serve(t, r, login(client)).Op
	f := metadata.NewFollower(wire.U128{}, metadata.Limits{})
	box := &inbox{}
	at := r.Feed().Open(box)
	box.pull(t, f, at, f.Connected(nil))
	serve(t, r, createStream(client, session, 1, "live"))
	box.pull(t, f, at, nil)
	equal := func() {
		t.Helper()
		if f.View().Op != r.View().Op || !bytes.Equal(f.View().EncodeSnapshot(nil), r.View().EncodeSnapshot(nil)) {
			t.Fatalf("the follower at op %d is not the replica at op %d", f.View().Op, r.View().Op)
		}
	}
	equal()
	mem.Kill()
	mem.Restart()
	r = openWith(t, mem, func(c *Config) { c.Feed = true })
	serve(t, r, createStream(client, session, 2, "later"))
	at = r.Feed().Open(box)
	before := f.View()
	box.pull(t, f, at, f.Connected(nil))
	equal()
	if before.StreamCount() != 1 || f.View().StreamCount() != 2 {
		t.Errorf("%d streams, then %d", before.StreamCount(), f.View().StreamCount())
	}
}

// A read-index names the end of the log, and only the primary gives one.
func TestReadIndex(t *testing.T) {
	r := open(t, vfs.NewMem(1))
	ask := func() *link.Call {
		c := link.NewCall()
		c.Group, c.Internal = wire.MetadataGroup, link.InternalReadIndex
		r.Serve(c)
		select {
		case <-c.Done():
		default:
			t.Fatal("not answered")
		}
		return c
	}
	op := serve(t, r, login(wire.U128{Lo: 1})).Op
	if c := ask(); c.Status != 0 || c.Op != op {
		t.Errorf("status %v, op %d, want %d", c.Status, c.Op, op)
	}
	r.Role(false, 1)
	if c := ask(); c.Status != wire.CodeTransientNotAccepted || c.Reason != link.ReasonNotPrimary {
		t.Errorf("status %v, reason %v at a backup", c.Status, c.Reason)
	}
}

// Ops of a client count as in flight from staging to apply, whoever admitted them, and not when they
// are cut.
func TestInFlightAcrossPrimaries(t *testing.T) {
	r := open(t, vfs.NewMem(1))
	a, b := wire.U128{Lo: 1}, wire.U128{Lo: 2}
	for op, client := range []wire.U128{a, b, a} {
		if _, err := r.Stage(&wire.PrepareHeader{Op: uint64(op + 1), Client: client}, nil); err != nil {
			t.Fatal(err)
		}
	}
	r.Unstage(3)
	if r.pipelined[a] != 1 || r.pipelined[b] != 1 {
		t.Errorf("%v in flight after a cut", r.pipelined)
	}
	r.Apply(&wire.PrepareHeader{Op: 1, Client: a, Operation: wire.OpLogout}, nil, nil)
	if c := login(b); true {
		if r.Serve(c); c.Status != wire.CodeTransientNotCommitted {
			t.Errorf("status %v with another op of the client in flight", c.Status)
		}
	}
	if r.pipelined[a] != 0 {
		t.Error("an applied op is in flight")
	}
}

// A replica that does not know what is committed says so: no beacon leaves, and its own view is soon too old
// to authorize from.
func TestReplicaThatKnowsNothing(t *testing.T) {
	knows := true
	r := openWith(t, vfs.NewMem(1), func(c *Config) { c.Feed, c.Current = true, func() bool { return knows } })
	f := metadata.NewFollower(wire.U128{}, metadata.Limits{})
	box := &inbox{}
	at := r.Feed().Open(box)
	box.pull(t, f, at, f.Connected(nil))
	knows = false
	r.Feed().Beat(time.Now())
	if len(box.frames) != 0 {
		t.Errorf("%d frames from a replica that knows nothing", len(box.frames))
	}
	if !r.Fresh() {
		t.Error("not fresh right after the start")
	}
	r.opened = r.opened.Add(-feed.FreshFor)
	if r.Fresh() {
		t.Error("fresh without knowing anything for long")
	}
	knows = true
	r.Feed().Beat(time.Now())
	if len(box.frames) != 1 || !r.Fresh() {
		t.Errorf("%d frames, fresh %v", len(box.frames), r.Fresh())
	}
}
