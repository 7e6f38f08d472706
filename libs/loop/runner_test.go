package loop

import (
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/link"
)

// TestCallDuringATickIsTaken: whoever finds a turn running leaves its event to the owner of that
// turn, and a tick is a turn too.
func TestCallDuringATickIsTaken(t *testing.T) {
	r := newRunner(New(&fakeEnv{}, Limits{}))
	c := link.NewCall()
	ticked := false
	r.Loop.Ticked = func() {
		if ticked {
			return
		}
		ticked = true
		served := make(chan struct{})
		go func() { defer close(served); r.Serve(c) }()
		<-served
	}
	r.Start()
	defer r.Close(time.Second)
	select {
	case <-c.Done():
	case <-time.After(20 * tickEvery):
		t.Fatal("a call that came during a tick was left in the inbox")
	}
}
