package loop

// Reclaim makes room on a full disk: what waits for a checkpoint, log files among it, is given up at
// once. then runs in a turn when that is done or has failed.
func (e *Engine) Reclaim(then func()) {
	e.Do(func() {
		if !e.checkpointing {
			e.startCheckpoint(func(error) { then() })
		}
	})
}
