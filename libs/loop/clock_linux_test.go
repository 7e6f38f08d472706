package loop

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Ticks follow the clock that goes on while the machine sleeps, and not the one that stops.
func TestTicksCountSleep(t *testing.T) {
	var before, after unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &before); err != nil {
		t.Fatal(err)
	}
	at := int64(Ticks())
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &after); err != nil {
		t.Fatal(err)
	}
	if now := at - 1 + process; now < before.Nano()/1000 || now > after.Nano()/1000 {
		t.Errorf("a tick between %d and %d is at %d", before.Nano()/1000, after.Nano()/1000, now)
	}
}

func BenchmarkTicks(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Ticks()
	}
}
