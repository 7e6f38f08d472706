package transfer

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/whippet-mq/whippet/libs/loop"
)

// nobody is connected to anybody.
type nobody struct{}

func (nobody) Send(uint8, loop.Frame) bool { return false }

// attempt fetches a state of a group and returns how long it took to end as it does.
func attempt(x *Exchange, group uint64, end error) time.Duration {
	started, ended := time.Now(), make(chan struct{})
	x.Fetch(Want{Node: 1, Group: group, Store: newDisk()}, func(*Fetched, error) error { close(ended); return end })
	<-ended
	return time.Since(started)
}

// TestFailedFetchWaits: what fails is tried again after a while, up to a limit; other groups do not wait, nor does
// one that succeeded since.
func TestFailedFetchWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := NewExchange(Config{Peers: nobody{}, Fetches: 1})
		defer x.Close()
		full := errors.New("no space left on device")
		const silence = maxStalls * askAgain
		for i, want := range []time.Duration{0, 500, 1000, 2000, 4000, 8000, 10_000, 10_000} {
			if took := attempt(x, 7, full); took != silence+want*time.Millisecond {
				t.Errorf("attempt %d ended after %v, want %d ms of waiting", i, took, want)
			}
		}
		if took := attempt(x, 8, nil); took != silence {
			t.Errorf("another group waited: %v", took)
		}
		attempt(x, 7, nil)
		if took := attempt(x, 7, nil); took != silence {
			t.Errorf("waited after a success: %v", took)
		}
	})
}

// TestFetchesAtOnce: no more run at once than were allowed, and closing ends those that wait.
func TestFetchesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := NewExchange(Config{Peers: nobody{}, Fetches: 2})
		ended := make(chan error, 5)
		for group := range uint64(5) {
			x.Fetch(Want{Node: 1, Group: group, Store: newDisk()}, func(_ *Fetched, err error) error { ended <- err; return err })
		}
		time.Sleep(maxStalls*askAgain + time.Millisecond)
		if n := len(ended); n != 2 {
			t.Errorf("%d fetches ended, 2 may run at once", n)
		}
		x.Close()
		x.Fetch(Want{}, func(*Fetched, error) error { t.Error("fetched after the end"); return nil })
	})
}
