package loop

import (
	"golang.org/x/sys/unix"

	"github.com/whippet-mq/whippet/libs/vsr"
)

// process is when this process began to count ticks.
var process = sinceBoot()

// Ticks is the clock of the process in microseconds, never 0. It goes on while the machine sleeps: a primary that
// wakes up does not take promises of before for fresh ones (design-arguments 14).
func Ticks() vsr.Tick { return vsr.Tick(sinceBoot()-process) + 1 }

// sinceBoot reads the clock in microseconds.
func sinceBoot() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic("loop: this kernel has no clock that counts sleep: " + err.Error())
	}
	return t.Nano() / 1000
}
