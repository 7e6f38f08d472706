package service

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Condition is one thing that must hold before the process is ready. Any goroutine may set it.
type Condition struct {
	set    *conditions
	name   string
	state  state
	reason string
}

type state uint8

const (
	failing state = iota
	degraded
	holding
)

func (s state) String() string { return [...]string{"failing", "degraded", "ok"}[s] }

// Hold says that the condition holds.
func (c *Condition) Hold() { c.change(holding, "") }

// Degrade says that the condition holds, but not for everything: the process stays ready and says why.
func (c *Condition) Degrade(reason string) { c.change(degraded, reason) }

// Fail says that the process is not ready, and why.
func (c *Condition) Fail(reason string) { c.change(failing, reason) }

func (c *Condition) change(s state, reason string) {
	c.set.mu.Lock()
	defer c.set.mu.Unlock()
	c.state, c.reason = s, reason
}

// conditions is the set behind /readyz.
type conditions struct {
	mu  sync.Mutex
	all map[string]*Condition
}

// get returns the condition of that name; a new one fails with the reason "starting".
func (s *conditions) get(name string) *Condition {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.all[name]; c != nil {
		return c
	}
	c := &Condition{set: s, name: name, reason: "starting"}
	s.all[name] = c
	return c
}

func (s *conditions) drop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, name)
}

// report returns whether every condition holds, and one line for each by name. With none at all
// the process is not ready.
func (s *conditions) report() (ready bool, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ready = len(s.all) > 0
	lines := make([]string, 0, len(s.all))
	for _, c := range s.all {
		ready = ready && c.state != failing
		line := fmt.Sprintf("%s %s", c.state, c.name)
		if c.reason != "" {
			line += ": " + c.reason
		}
		lines = append(lines, line+"\n")
	}
	slices.SortFunc(lines, cmp.Compare)
	return ready, strings.Join(lines, "")
}
