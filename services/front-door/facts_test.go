package frontdoor

import (
	"encoding/binary"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/wire"
)

// heldService keeps requests for facts until it is told to answer.
type heldService struct {
	calls  chan *link.Call
	answer func(id uint64) link.Fact
}

func (h *heldService) Serve(c *link.Call) { h.calls <- c }

func (h *heldService) release() (ids int) {
	c := <-h.calls
	for b := c.Body; len(b) >= 8; b = b[8:] {
		c.Out = link.AppendFact(c.Out, h.answer(binary.LittleEndian.Uint64(b)))
		ids++
	}
	c.Finish()
	return ids
}

// Whoever asks while a request is under way shares the next one and never gets the older answer.
func TestFactsAreShared(t *testing.T) {
	round := uint64(0)
	h := &heldService{calls: make(chan *link.Call, 8), answer: func(id uint64) link.Fact { return link.Fact{Group: id, Messages: round} }}
	f := newFacts(func(uint64) link.Service { return h }, time.Minute)
	results := make(chan uint64, 8)
	ask := func() {
		go func() { results <- f.get([]uint64{5}, nil)[0].Messages }()
	}
	ask()
	first := <-h.calls
	for range 4 {
		ask()
	}
	eventually(t, "four to wait for the next round", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		source := f.asked[h]
		return source != nil && source.coming != nil && len(source.coming.ids) == 4
	})
	h.calls <- first
	round = 1
	h.release()
	if got := <-results; got != 1 {
		t.Errorf("first: %d", got)
	}
	next := <-h.calls
	round = 2
	h.calls <- next
	if ids := h.release(); ids != 4 {
		t.Errorf("one request for %d callers", ids)
	}
	for range 4 {
		if got := <-results; got != 2 {
			t.Errorf("a later caller got the facts of round %d", got)
		}
	}
	if len(h.calls) != 0 {
		t.Error("more requests than rounds")
	}
}

// A replica that does not answer is answered for with what was known last.
func TestFactsOfASilentReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heldService{calls: make(chan *link.Call, 8), answer: func(id uint64) link.Fact { return link.Fact{Group: id, Messages: 9} }}
		f := newFacts(func(uint64) link.Service { return h }, time.Second)
		go h.release()
		if got := f.get([]uint64{5}, nil)[0]; got.Messages != 9 {
			t.Fatalf("%+v", got)
		}
		asked := time.Now()
		if got := f.get([]uint64{5, 6}, nil); got[0].Messages != 9 || got[1] != (link.Fact{}) {
			t.Errorf("%+v", got)
		}
		if took := time.Since(asked); took != time.Second {
			t.Errorf("waited %v", took)
		}
	})
}

func TestFactsWithoutAReplica(t *testing.T) {
	f := newFacts(func(uint64) link.Service { return nil }, time.Minute)
	if got := f.get([]uint64{5}, nil); got[0] != (link.Fact{}) {
		t.Errorf("%+v", got)
	}
}

// A replica that is silent costs its own facts only, and the limit once.
func TestFactsOfOtherReplicas(t *testing.T) {
	silent := &heldService{calls: make(chan *link.Call, 8)}
	alive := &heldService{calls: make(chan *link.Call, 8), answer: func(id uint64) link.Fact { return link.Fact{Group: id, Messages: id} }}
	f := newFacts(func(group uint64) link.Service {
		if group < 10 {
			return silent
		}
		return alive
	}, 200*time.Millisecond)
	var group sync.WaitGroup
	group.Go(func() { f.get([]uint64{5}, nil) })
	<-silent.calls // its round is under way
	group.Go(func() { alive.release() })
	begun := time.Now()
	if got := f.get([]uint64{15}, nil); got[0].Messages != 15 || time.Since(begun) >= 200*time.Millisecond {
		t.Errorf("%+v after %v", got, time.Since(begun))
	}
	group.Wait()
}

// A group that the asked replica does not lead is asked for at the next one.
func TestFactsElsewhere(t *testing.T) {
	stranger := &heldService{calls: make(chan *link.Call, 8)}
	leader := &heldService{calls: make(chan *link.Call, 8), answer: func(id uint64) link.Fact { return link.Fact{Group: id, Messages: id} }}
	var mu sync.Mutex
	leading := link.Service(stranger)
	f := newFacts(func(uint64) link.Service {
		mu.Lock()
		defer mu.Unlock()
		return leading
	}, time.Minute)
	f.elsewhere = func(c *link.Call, s link.Service) {
		mu.Lock()
		defer mu.Unlock()
		if c.Group != 15 || c.Reason != link.ReasonNotPrimary || s != link.Service(stranger) {
			t.Errorf("group %d is elsewhere: %v", c.Group, c.Reason)
		}
		leading = leader
	}
	var group sync.WaitGroup
	group.Go(func() {
		c := <-stranger.calls
		c.Finish()
		leader.release()
	})
	if got := f.get([]uint64{15}, nil); got[0].Messages != 15 {
		t.Errorf("%+v", got)
	}
	group.Wait()
}

// A link that is only being made is waited for, as long as facts may take.
func TestFactsOfANewLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		s := serviceFunc(func(c *link.Call) {
			if time.Since(begun) < 300*time.Millisecond {
				c.Refuse(wire.CodeTransientNotAccepted, link.ReasonUnreachable)
				return
			}
			c.Out = link.AppendFact(c.Out, link.Fact{Group: 15, Messages: 9})
			c.Finish()
		})
		f := newFacts(func(uint64) link.Service { return &s }, time.Second)
		f.elsewhere = func(*link.Call, link.Service) {}
		if got := f.get([]uint64{15}, nil); got[0].Messages != 9 {
			t.Errorf("%+v", got)
		}
		if got := f.get([]uint64{15, 16}, nil); got[1] != (link.Fact{}) || time.Since(begun) > 1500*time.Millisecond {
			t.Errorf("%+v after %v", got, time.Since(begun))
		}
	})
}

type serviceFunc func(*link.Call)

func (f *serviceFunc) Serve(c *link.Call) { (*f)(c) }
