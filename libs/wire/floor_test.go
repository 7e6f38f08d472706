package wire_test

import (
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
)

// A primary of an older view is below whatever it holds, one of a newer view never is.
func TestFloorOrder(t *testing.T) {
	for _, c := range []struct {
		at, shown wire.Floor
		below     bool
	}{
		{wire.Floor{}, wire.Floor{}, false},
		{wire.Floor{View: 3}, wire.Floor{}, false},
		{wire.Floor{}, wire.Floor{Next: 1}, true},
		{wire.Floor{View: 3, Next: 10}, wire.Floor{View: 3, Next: 10}, false},
		{wire.Floor{View: 3, Next: 10}, wire.Floor{View: 3, Next: 11}, true},
		{wire.Floor{View: 3, Next: 99}, wire.Floor{View: 4, Next: 0}, true},
		{wire.Floor{View: 4, Next: 7}, wire.Floor{View: 3, Next: 99}, false},
	} {
		if got := c.at.Below(c.shown); got != c.below {
			t.Errorf("%+v below %+v: %v", c.at, c.shown, got)
		}
	}
}
