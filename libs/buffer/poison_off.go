//go:build !poison

package buffer

// The checks of poison builds, compiled away: poison is a constant.
const poison = false

type poisonMark struct{}
type parking struct{}

func (f *Frame) checkLive(string)   {}
func (f *Frame) checkFrozen(string) {}
func (f *Frame) freeze()            {}
func (f *Frame) thaw()              {}
func (p *Pool) park(*Frame) *Frame  { return nil }
