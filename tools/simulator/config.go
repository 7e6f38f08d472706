package simulator

import (
	"fmt"
	"strings"

	"github.com/whippet-mq/whippet/libs/vsr"
	"github.com/whippet-mq/whippet/libs/wire"
)

// Profile chooses which faults a run may have and what is asked of it.
type Profile string

const (
	Safety   Profile = "safety"   // faults to the end; nothing wrong may ever happen
	Liveness Profile = "liveness" // then a quorum is healed, and everything must come to rest
	Power    Profile = "power"    // power cuts of any nodes, all at once too; all come back
)

// Profiles are all of them.
var Profiles = []Profile{Safety, Liveness, Power}

// Options say which run is wanted. The zero values of Without and Length leave the drawn run as it is.
type Options struct {
	Seed    uint64
	Profile Profile
	Without []Fault // faults switched off
	Length  uint64  // µs of the fault phase, 0 = as drawn
	Nodes   int     // 1..32, 0 = as drawn
}

// String is the command line that repeats the run.
func (o Options) String() string {
	text := fmt.Sprintf("replay %d --profile %s", o.Seed, o.Profile)
	if len(o.Without) > 0 {
		names := make([]string, len(o.Without))
		for i, f := range o.Without {
			names[i] = f.String()
		}
		text += " --without " + strings.Join(names, ",")
	}
	if o.Nodes > 0 {
		text += fmt.Sprintf(" --nodes %d", o.Nodes)
	}
	if o.Length > 0 {
		text += fmt.Sprintf(" --length %d", o.Length)
	}
	return text
}

// Config is everything that a run draws before it starts.
type Config struct {
	Options
	Groups   []GroupConfig
	Clients  int
	Think    uint64 // µs between two requests of a client, on average
	Reads    float64
	Delay    uint64 // µs a frame takes on average, and at least a fifth of it
	Write    uint64 // µs of a write round on average
	Sync     uint64 // µs of a sync on average
	Restart  uint64 // µs until a killed process runs again, on average
	SyncBoot bool   // a start syncs what the life before had only written
	Rates    [faultCount]float64
}

// GroupConfig is one group of a run.
type GroupConfig struct {
	ID       uint64
	Members  []int // node of each member index
	Policy   vsr.Policy
	Pipeline int
	After    int // index + 1 of the group it may succeed, 0: it is born with the run. Without members until it does
}

func (g *GroupConfig) metadata() bool { return g.ID == wire.MetadataGroup }

// quorums of the group.
func (g *GroupConfig) quorums() vsr.Quorums { return vsr.QuorumsOf(len(g.Members)) }

// Draw makes the configuration of a run. Every draw is made whatever is switched off, so that a
// shortened run keeps its shape.
func Draw(o Options) Config {
	s := newStream(o.Seed, "config "+string(o.Profile))
	c := Config{
		Options: o,
		Clients: int(s.between(1, 8)), Think: s.between(2, 40) * millisecond, Reads: 0.4 * s.fraction(),
		Delay: s.between(100, 3000), Write: s.between(20, 1500), Sync: s.between(100, 8000),
		Restart: s.between(20, 900) * millisecond, SyncBoot: s.chance(0.5),
	}
	if nodes := []int{1, 3, 3, 3, 3, 3, 5, 5}[s.index(8)]; c.Nodes == 0 {
		c.Nodes = nodes
	}
	c.drawGroups(s)
	c.drawHeirs()
	length := s.between(3, 9) * second
	if c.Length == 0 || c.Length > length {
		c.Length = length
	}
	wild := float64(s.below(2)) // every second run has high rates
	for f := range faultCount {
		k := &faultKinds[f]
		wanted := s.chance(k.odds)
		rate := k.low + (k.high-k.low)*s.fraction()*max(s.fraction(), wild)
		if wanted && strings.Contains(k.profiles, string(o.Profile[0])) {
			c.Rates[f] = rate
		}
	}
	for _, f := range o.Without {
		c.Rates[f] = 0
	}
	return c
}

// drawGroups makes the metadata group and one to three partitions, some on fewer nodes than there are.
func (c *Config) drawGroups(s *stream) {
	pipeline := []int{0, 0, 0, 1, 4, vsr.MaxPipeline}
	c.Groups = append(c.Groups, GroupConfig{
		ID: wire.MetadataGroup, Members: c.drawMembers(s),
		Policy:   vsr.Policy{SealBody: true, Incarnation: true, Synced: true},
		Pipeline: pipeline[s.index(len(pipeline))],
	})
	for i := range s.between(1, 3) {
		c.Groups = append(c.Groups, GroupConfig{
			ID: wire.GroupID(1, 1, uint32(i), uint16(s.below(3))), Members: c.drawMembers(s),
			Policy: vsr.Policy{Synced: s.chance(0.25)}, Pipeline: pipeline[s.index(len(pipeline))],
		})
	}
}

// drawHeirs makes room for the successors of partitions.
func (c *Config) drawHeirs() {
	for range successions {
		for i := range c.Groups {
			g := c.Groups[i]
			if stream, topic, partition, tag := wire.SplitGroupID(g.ID); !g.metadata() && !c.hasHeir(i) {
				c.Groups = append(c.Groups, GroupConfig{ID: wire.GroupID(stream, topic, partition, tag+1), Policy: g.Policy, Pipeline: g.Pipeline, After: i + 1})
			}
		}
	}
}

func (c *Config) hasHeir(group int) bool {
	for i := range c.Groups {
		if c.Groups[i].After == group+1 {
			return true
		}
	}
	return false
}

// drawMembers is a rotated choice of nodes: all of them, or an odd number.
func (c *Config) drawMembers(s *stream) []int {
	n := c.Nodes
	if fewer := 1 + 2*s.index(n/2+1); s.chance(0.25) {
		n = fewer
	}
	first := s.index(c.Nodes)
	members := make([]int, n)
	for i := range members {
		members[i] = (first + i) % c.Nodes
	}
	return members
}
