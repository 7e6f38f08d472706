package loop

import (
	"errors"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/whippet-mq/whippet/libs/journal"
	"github.com/whippet-mq/whippet/libs/vfs"
	"github.com/whippet-mq/whippet/libs/wire"
)

// imageMachine is a fakeMachine whose checkpoint image is what it applied.
type imageMachine struct{ fakeMachine }

func (m *imageMachine) Image() Image {
	state := append([]byte(nil), m.applied...)
	return Image{
		Run: func() error { return nil }, Done: func(error) {},
		Encode: func(dst []byte) []byte { return append(dst, state...) },
	}
}

func openEngine(t *testing.T, fs vfs.FS, state *imageMachine) (*Engine, *journal.Recovered) {
	t.Helper()
	e, rec, err := OpenEngine(EngineOptions{
		FS: fs, Dir: "log", Log: hclog.NewNullLogger(), Limits: Limits{Pipeline: 8, Queue: 8}, Stepped: true,
		FileSize: 1 << 20, Budget: 16 << 20, Reserve: 1 << 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	spec := Spec{ID: 7, Members: 1}
	if len(rec.Groups) == 0 {
		e.Born(spec, state)
		return e, rec
	}
	if image := rec.Groups[0].Image; image != nil {
		state.applied = append(state.applied, image.State...)
	}
	e.Host(spec, state, &rec.Groups[0])
	if err := e.Replay(rec, func(_ *Group, err error) { t.Fatal(err) }); err != nil {
		t.Fatal(err)
	}
	return e, rec
}

// TestCheckpointRightAfterARestart: a log that was full enough at the restart is checkpointed by the
// first tick, before any round of this life. The checkpoint must count at the next restart, because
// files go on its word.
func TestCheckpointRightAfterARestart(t *testing.T) {
	fs := vfs.NewMem(1)
	e, _ := openEngine(t, fs, &imageMachine{})
	g := e.Loop.Group(7)
	p := Proposal{Operation: wire.OpSendMessages, Buf: append(make([]byte, wire.HeaderSize), 'a'), BodyStart: wire.HeaderSize, BodyLen: 1}
	if !e.Loop.Propose(g, &p, nil) {
		t.Fatal("not proposed")
	}
	e.Loop.conclude()
	if g.Applied() != 1 {
		t.Fatalf("applied %d", g.Applied())
	}
	fs.Kill()
	fs.Restart()

	e, _ = openEngine(t, fs, &imageMachine{})
	s := e.Loop.image(e.Loop.reached)
	if err := errors.Join(s.run(), e.writeCheckpoint(s)); err != nil {
		t.Fatal(err)
	}
	fs.Kill()
	fs.Restart()

	state := &imageMachine{}
	_, rec := openEngine(t, fs, state)
	if rec.Groups[0].Image == nil || string(state.applied) != "a" {
		t.Fatalf("the checkpoint does not count: applied %q", state.applied)
	}
}
