//go:build linux

package cluster

import (
	"fmt"
	"time"

	"github.com/whippet-mq/whippet/tools/local"
)

// nemesis is a way in which a network between members is bad. Clients reach all nodes all the time, so that
// they can ask the one that is cut off from the others.
type nemesis struct {
	name  string
	lasts time.Duration
	act   func(n *network, victim int, others []int, until time.Time)
}

const (
	healTime  = 1500 * time.Millisecond // between two
	flapTime  = 300 * time.Millisecond
	farDelay  = 100 * time.Millisecond
	lossShare = 0.05
	calm      = "0 healthy"
)

// set is a nemesis that lasts as it is.
func set(f func(n *network, victim int, others []int)) func(*network, int, []int, time.Time) {
	return func(n *network, victim int, others []int, until time.Time) {
		f(n, victim, others)
		elapse(time.Until(until))
	}
}

var (
	away = nemesis{"away", 3 * time.Second, set(func(n *network, victim int, others []int) {
		n.set(way{cut: true}, []int{victim}, others)
		n.set(way{cut: true}, others, []int{victim})
	})}
	mute = nemesis{"mute", 3 * time.Second, set(func(n *network, victim int, others []int) {
		n.set(way{cut: true}, []int{victim}, others)
	})}
	deaf = nemesis{"deaf", 3 * time.Second, set(func(n *network, victim int, others []int) {
		n.set(way{cut: true}, others, []int{victim})
	})}
	torn = nemesis{"torn", 3 * time.Second, set(func(n *network, victim int, others []int) { // the third still sees both
		n.set(way{cut: true}, []int{victim}, others[:1])
		n.set(way{cut: true}, others[:1], []int{victim})
	})}
	flapping = nemesis{"flapping", 5 * time.Second, func(n *network, victim int, others []int, until time.Time) {
		for cut := true; time.Now().Before(until); cut = !cut {
			n.set(way{cut: cut}, []int{victim}, others)
			n.set(way{cut: cut}, others, []int{victim})
			elapse(flapTime)
		}
	}}
	far = nemesis{"far", 4 * time.Second, set(func(n *network, victim int, others []int) {
		all := append([]int{victim}, others...)
		n.set(way{delay: farDelay}, all, all)
	})}
	lossy = nemesis{"lossy", 5 * time.Second, set(func(n *network, victim int, others []int) {
		all := append([]int{victim}, others...)
		n.set(way{loss: lossShare}, all, all)
	})}
)

// thorough is what happens to a network, one after the other. The victims take turns: of three nodes each is
// away once, so that whoever leads is.
var thorough = []nemesis{away, away, away, mute, deaf, torn, flapping, far, lossy}

// run has one nemesis after the other, each followed by a time in which the network is good.
func (n *network) run(c *local.Cluster, nemeses []nemesis, victims []int, enter func(string), report func(string, ...any)) {
	for i, one := range nemeses {
		victim := victims[i%len(victims)]
		var others []int
		for node := range c.Members {
			if node != victim {
				others = append(others, node)
			}
		}
		n.counted()
		phase := fmt.Sprintf("%d %s, %s %d", i+1, one.name, c.Members[victim].Role, c.Members[victim].ID)
		enter(phase)
		one.act(n, victim, others, time.Now().Add(one.lasts))
		passed, lost := n.counted()
		report("%-28s %6d packets passed, %5d lost", phase, passed, lost)
		n.heal()
		enter(fmt.Sprintf("%d healed", i+1))
		elapse(healTime)
	}
}
