//go:build !linux

package loop

import (
	"time"

	"github.com/whippet-mq/whippet/libs/vsr"
)

// process is when this process began to count ticks.
var process = time.Now()

// Ticks is the clock of the process in microseconds, never 0. Here it stands still while the machine sleeps, so
// clusters whose machines do are for Linux.
func Ticks() vsr.Tick { return vsr.Tick(time.Since(process).Microseconds()) + 1 }
