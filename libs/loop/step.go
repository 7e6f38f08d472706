package loop

import "github.com/whippet-mq/whippet/libs/journal"

// Step runs the oldest waiting file work of a stepped engine and the turn its result causes; false
// if none waits.
func (e *Engine) Step() bool {
	if len(e.steps) == 0 {
		return false
	}
	j := e.steps[0]
	e.steps = e.steps[1:]
	err := j.run()
	e.Do(func() { j.done(err) })
	return true
}

// Advance is what time brings to a stepped engine: the background sync of the log and a tick.
func (e *Engine) Advance() error {
	err := e.writer.(*journal.Inline).Background()
	e.Do(func() {})
	e.turn.Lock()
	e.Loop.Tick()
	e.turn.Unlock()
	e.kick()
	return err
}

// BeginCheckpoint starts a checkpoint in the background unless one is under way.
func (e *Engine) BeginCheckpoint() {
	e.Do(func() {
		if !e.checkpointing {
			e.startCheckpoint(nil)
		}
	})
}
