package loop

import (
	"sync"
	"sync/atomic"
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

// Who waits while the runner ends, or asks when it has ended, is told whether the function ran.
func TestWaitAtTheEnd(t *testing.T) {
	r := newRunner(New(&fakeEnv{}, Limits{}))
	r.Start()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for ok := true; ok; {
				var ran atomic.Bool
				if ok = r.Wait(func() { ran.Store(true) }); ok != ran.Load() {
					t.Errorf("Wait says %v, the function ran: %v", ok, ran.Load())
				}
			}
		})
	}
	if !r.Wait(func() {}) {
		t.Error("nothing runs before the end")
	}
	r.Close(time.Second)
	all.Wait()
	if r.Wait(func() { t.Error("a function ran after the end") }) {
		t.Error("Wait says that a function ran after the end")
	}
}
