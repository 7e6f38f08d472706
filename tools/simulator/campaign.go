package simulator

import (
	"fmt"
	"io"
	"maps"
	"slices"
)

// Campaign runs the seeds from Options.Seed to Last and adds up what they did.
type Campaign struct {
	Options     Options
	Last        uint64
	StopAtFirst bool
	Report      func(*Result) // called for every failure
	Each        func(*Result) // called for every run, may be nil

	Passed, Failed int
	Counts         map[string]uint64
	time           uint64
	leader, rest   uint64
}

// Run runs the campaign.
func (c *Campaign) Run() {
	c.Counts = map[string]uint64{}
	for o := c.Options; o.Seed <= c.Last; o.Seed++ {
		r := Run(o, nil)
		c.add(&r)
		if !r.Passed() && c.StopAtFirst {
			return
		}
	}
}

func (c *Campaign) add(r *Result) {
	for what, n := range r.Counts {
		c.Counts[what] += n
	}
	c.time += r.Time
	if c.Each != nil {
		c.Each(r)
	}
	c.leader, c.rest = max(c.leader, r.Leader), max(c.rest, r.Settled)
	if r.Passed() {
		c.Passed++
		return
	}
	c.Failed++
	if c.Report != nil {
		c.Report(r)
	}
}

// Seconds is the virtual time of all runs.
func (c *Campaign) Seconds() float64 { return float64(c.time) / second }

// SlowestLeader is the longest time in s that a healed cluster had a group without a primary.
func (c *Campaign) SlowestLeader() float64 { return float64(c.leader) / second }

// SlowestRest is the longest time in s that a healed cluster took to come to rest.
func (c *Campaign) SlowestRest() float64 { return float64(c.rest) / second }

// PrintCounts prints what happened how often, by name.
func (c *Campaign) PrintCounts(out io.Writer) {
	for _, what := range slices.Sorted(maps.Keys(c.Counts)) {
		fmt.Fprintf(out, "%10d  %s\n", c.Counts[what], what)
	}
}
