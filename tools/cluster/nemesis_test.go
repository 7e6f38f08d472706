//go:build linux

package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/tools/local"
)

// sides are the two sides of a cut. On the near one are the members that lead at that moment, and a member that
// serves clients; on the far one is everybody who can replace them, and others that serve clients. Clients reach
// both sides all the time.
type sides struct{ near, far []int }

// nemesis is a way in which a network between members is bad.
type nemesis struct {
	name  string
	lasts time.Duration
	act   func(d *disturbance, s sides, until time.Time)
}

const (
	healTime  = 1500 * time.Millisecond // between two
	flapTime  = 300 * time.Millisecond
	electTime = 1500 * time.Millisecond // the far side has new leaders by then
	farDelay  = 100 * time.Millisecond
	lossShare = 0.05
	calm      = "0 healthy"
)

// steady is a nemesis that lasts as it is.
func steady(f func(n *network, s sides)) func(*disturbance, sides, time.Time) {
	return func(d *disturbance, s sides, until time.Time) {
		f(d.network, s)
		elapse(time.Until(until))
	}
}

func (n *network) part(s sides, w way) {
	n.set(w, s.near, s.far)
	n.set(w, s.far, s.near)
}

var (
	away = nemesis{"away", 3 * time.Second, steady(func(n *network, s sides) { n.part(s, way{cut: true}) })}
	mute = nemesis{"mute", 2500 * time.Millisecond, steady(func(n *network, s sides) { n.set(way{cut: true}, s.near, s.far) })}
	deaf = nemesis{"deaf", 2500 * time.Millisecond, steady(func(n *network, s sides) { n.set(way{cut: true}, s.far, s.near) })}
	torn = nemesis{"torn", 2500 * time.Millisecond, steady(func(n *network, s sides) { // the others still see both
		n.part(sides{s.near, s.far[:1]}, way{cut: true})
	})}
	// replaced members come back to all but those that lead instead of them: nobody tells them who does.
	replaced = nemesis{"replaced", 5 * time.Second, func(d *disturbance, s sides, until time.Time) {
		d.network.part(s, way{cut: true})
		elapse(electTime)
		d.network.heal()
		d.network.part(sides{s.near, d.leaders(s.far)}, way{cut: true})
		elapse(time.Until(until))
	}}
	flapping = nemesis{"flapping", 4 * time.Second, func(d *disturbance, s sides, until time.Time) {
		for cut := true; time.Now().Before(until); cut = !cut {
			d.network.part(s, way{cut: cut})
			elapse(flapTime)
		}
	}}
	far = nemesis{"far", 3 * time.Second, func(d *disturbance, _ sides, until time.Time) {
		d.network.everywhere(way{delay: farDelay}, d.members())
		elapse(time.Until(until))
	}}
	lossy = nemesis{"lossy", 3 * time.Second, func(d *disturbance, _ sides, until time.Time) {
		d.network.everywhere(way{loss: lossShare}, d.members())
		elapse(time.Until(until))
	}}
)

// thorough is what happens to a network, one after the other.
var thorough = []nemesis{away, replaced, mute, away, deaf, torn, flapping, far, lossy}

// disturbance is the bad time of a cluster.
type disturbance struct {
	cluster *local.Cluster
	network *network
	random  *rand.Rand
	enter   func(phase string)
}

// run has one nemesis after the other, each followed by a time in which the network is good.
func (d *disturbance) run(t *testing.T, nemeses []nemesis) {
	for i, one := range nemeses {
		s := d.sides()
		d.network.counted()
		var names []string
		for _, m := range s.near {
			names = append(names, fmt.Sprintf("%s %d", d.cluster.Members[m].Role, d.cluster.Members[m].ID))
		}
		phase := fmt.Sprintf("%d %s", i+1, one.name)
		d.enter(phase)
		one.act(d, s, time.Now().Add(one.lasts))
		passed, lost := d.network.counted()
		t.Logf("%-12s %6d packets passed, %5d lost; near: %s", phase, passed, lost, strings.Join(names, ", "))
		d.network.heal()
		d.enter(fmt.Sprintf("%d healed", i+1))
		elapse(healTime)
	}
}

// sides puts one leader of each kind there is on the near side, with one door where those are members of
// their own. Who leads the metadata is there and the rest, too, where one node has every role.
func (d *disturbance) sides() (s sides) {
	near := map[string]int{}
	led := map[string]float64{}
	for i, m := range d.cluster.Members {
		leads := d.random.Float64() // among equals
		if m.Role != local.FrontDoor {
			leads += d.leads(i)
		}
		if role := string(m.Role); leads >= led[role] {
			near[role], led[role] = i, leads
		}
	}
	for i, m := range d.cluster.Members {
		if near[string(m.Role)] == i {
			s.near = append(s.near, i)
		} else {
			s.far = append(s.far, i)
		}
	}
	return s
}

// leaders are those of some members that lead anything now.
func (d *disturbance) leaders(of []int) (all []int) {
	for _, i := range of {
		if d.cluster.Members[i].Role != local.FrontDoor && d.leads(i) > 0 {
			all = append(all, i)
		}
	}
	return all
}

// leads is how many groups a member leads.
func (d *disturbance) leads(i int) (n float64) {
	m := d.cluster.Members[i]
	if m.Role != local.Partition {
		n += metric(d.cluster, m, "whippet_metadata_primary")
	}
	if m.Role != local.Metadata {
		n += metric(d.cluster, m, "whippet_partitions_led")
	}
	return n
}

func (d *disturbance) members() []int {
	all := make([]int, len(d.cluster.Members))
	for i := range all {
		all[i] = i
	}
	return all
}

// everywhere makes all ways between some nodes alike.
func (n *network) everywhere(w way, nodes []int) { n.set(w, nodes, slices.Clone(nodes)) }
