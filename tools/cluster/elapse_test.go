package cluster

import "time"

// elapse lets the clusters of measurements go on for a while.
func elapse(d time.Duration) {
	time.Sleep(d) // how long something goes on, or when it is struck, is the point of the test
}
