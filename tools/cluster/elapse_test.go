package cluster

import (
	"context"
	"time"
)

// elapse lets the clusters of measurements go on for a while.
func elapse(d time.Duration) {
	time.Sleep(d) // how long something goes on, or when it is struck, is the point of the test
}

// sleep is a pause that ends with ctx.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
