package simulator

import "github.com/whippet-mq/whippet/libs/vsr"

// clock is a node's two clocks. The monotonic one runs at its own speed and through pauses; the wall
// clock may jump.
type clock struct {
	w     *World
	rate  float64
	start uint64 // what the monotonic clock shows at virtual time 0
	shift uint64 // of the wall clock
}

// epochStart keeps wall clocks above zero whatever they jump.
const epochStart = 1_700_000_000 * second

func (c *clock) tick() vsr.Tick { return vsr.Tick(c.start + uint64(float64(c.w.now)*c.rate)) }

func (c *clock) wall() uint64 { return epochStart + c.shift + uint64(float64(c.w.now)*c.rate) }

// until is the virtual time that passes before the monotonic clock shows t.
func (c *clock) until(t vsr.Tick) uint64 {
	now := c.tick()
	if t <= now {
		return 1
	}
	return uint64(float64(t-now)/c.rate) + 2
}
