package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/whippet-mq/whippet/libs/placement"
	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
)

// placementCommands say where partitions are and move them.
func (a *app) placementCommands() []*cobra.Command {
	return []*cobra.Command{
		a.command("status", "Show the partition replicas, what they hold, and what is moving", cobra.NoArgs, func(c *client.Client, _ []string) (any, error) {
			at, err := c.Place(placement.Command{Do: placement.DoStatus})
			if err != nil {
				return nil, err
			}
			return placementRecord(at), nil
		}),
		a.addNodes(),
		a.moving("drain NODE...", "Move everything off partition replicas and place nothing new on them", cobra.MinimumNArgs(1), drain),
		a.moving("move STREAM TOPIC PARTITION NODES", "Have a partition on these nodes, such as 3,5,6; the first one leads", cobra.ExactArgs(4), moveOne),
		a.moving("rebalance", "Spread copies and leads evenly, and replace the copies on nodes that are down", cobra.NoArgs, rebalance),
		a.command("cancel STREAM TOPIC PARTITION", "Have a partition stay that is moving; too late once its group is sealed", cobra.ExactArgs(3), cancelMove),
		a.onNode("keep NODE", "Take a drain back: new partitions are placed on the node again", placement.DoKeep),
		a.onNode("remove NODE", "Forget a partition replica that is stopped and holds nothing", placement.DoRemove),
	}
}

func (a *app) onNode(use, short, do string) *cobra.Command {
	return a.command(use, short, cobra.ExactArgs(1), func(c *client.Client, args []string) (any, error) {
		node, err := nodeNumber(args[0])
		if err != nil {
			return nil, err
		}
		_, err = c.Place(placement.Command{Do: do, Node: node})
		return nil, err
	})
}

func nodeNumber(text string) (int, error) {
	node, err := strconv.Atoi(text)
	if err != nil || node < 0 || node >= int(wire.NoNode) {
		return 0, usageError{fmt.Errorf("%q is no node: want a number from 0 to 254", text)}
	}
	return node, nil
}

// planned makes a plan of the cluster as it is. mark is done before the moves and not with --plan.
type planned func(r *relocation, args []string) (moves []placement.Move, mark func() error, err error)

// moving builds a command that carries a plan out, or with --plan only shows it.
func (a *app) moving(use, short string, args cobra.PositionalArgs, plan planned) *cobra.Command {
	r := &relocation{app: a}
	var cmd *cobra.Command
	cmd = a.command(use, short, args, func(c *client.Client, args []string) (any, error) {
		r.client = c
		return nil, r.run(cmd.Context(), plan, args)
	})
	r.flags(cmd)
	return cmd
}

// addNodes waits for new nodes and has them take their share.
func (a *app) addNodes() *cobra.Command {
	nodes, wait := 1, 2*time.Minute
	cmd := a.moving("add", "Wait until new partition replicas are up, then rebalance", cobra.NoArgs, func(r *relocation, args []string) ([]placement.Move, func() error, error) {
		for deadline := time.Now().Add(wait); ; time.Sleep(lookEvery) {
			empty := 0
			loads := placement.Loads(r.at)
			for i := range r.at.Nodes {
				if n := &r.at.Nodes[i]; n.Alive && !n.Draining && loads[n.ID].Copies == 0 {
					empty++
				}
			}
			switch {
			case empty >= nodes:
				return rebalance(r, args)
			case r.plan || time.Now().After(deadline):
				return nil, nil, fmt.Errorf("%d new partition replicas are up, want %d: start them with the cluster's WHIPPET_METADATA and secret", empty, nodes)
			}
			if err := r.look(); err != nil {
				return nil, nil, err
			}
		}
	})
	cmd.Flags().IntVar(&nodes, "nodes", nodes, "how many new ones to wait for")
	cmd.Flags().DurationVar(&wait, "wait", wait, "how long")
	return cmd
}

func rebalance(r *relocation, _ []string) ([]placement.Move, func() error, error) {
	moves, err := placement.Rebalance(r.at)
	return moves, nil, err
}

func drain(r *relocation, args []string) ([]placement.Move, func() error, error) {
	var nodes []int
	for _, text := range args {
		node, err := nodeNumber(text)
		if err != nil {
			return nil, nil, err
		}
		at := slices.IndexFunc(r.at.Nodes, func(n placement.Node) bool { return n.ID == node })
		if at < 0 {
			return nil, nil, fmt.Errorf("there is no partition replica %d", node)
		}
		r.at.Nodes[at].Draining = true
		nodes = append(nodes, node)
	}
	moves, err := placement.Drain(r.at) // before anything is marked: what can not be drained is refused
	return moves, func() error {
		for _, node := range nodes {
			if _, err := r.client.Place(placement.Command{Do: placement.DoDrain, Node: node}); err != nil {
				return err
			}
		}
		return nil
	}, err
}

func moveOne(r *relocation, args []string) ([]placement.Move, func() error, error) {
	p, err := onePartition(r.client, r.at, args)
	if err != nil {
		return nil, nil, err
	}
	var to []int
	for text := range strings.SplitSeq(args[3], ",") {
		node, err := nodeNumber(strings.TrimSpace(text))
		if err != nil {
			return nil, nil, err
		}
		to = append(to, node)
	}
	return []placement.Move{{Partition: *p, To: to}}, nil, nil
}

func cancelMove(c *client.Client, args []string) (any, error) {
	at, err := c.Place(placement.Command{Do: placement.DoStatus})
	if err != nil {
		return nil, err
	}
	p, err := onePartition(c, at, args)
	if err != nil {
		return nil, err
	}
	_, err = c.Place(placement.Command{Do: placement.DoCancel, Group: p.Group})
	return nil, err
}

// onePartition finds the partition that STREAM TOPIC PARTITION name.
func onePartition(c *client.Client, at *placement.Cluster, args []string) (*placement.Partition, error) {
	ids, err := identifiers(args[0], args[1])
	if err != nil {
		return nil, err
	}
	id, err := number(args[2], "PARTITION")
	if err != nil {
		return nil, err
	}
	stream, err := c.Stream(ids[0])
	if err != nil {
		return nil, err
	}
	topic, err := c.Topic(ids[0], ids[1])
	if err != nil {
		return nil, err
	}
	for i := range at.Partitions {
		if p := &at.Partitions[i]; p.Stream == stream.ID && p.Topic == topic.ID && p.ID == id {
			return p, nil
		}
	}
	return nil, client.ErrNotFound
}

// placementRecord shows the nodes with what they hold, and the partitions that move.
func placementRecord(at *placement.Cluster) record {
	loads := placement.Loads(at)
	nodes, moving := list{}, list{}
	for _, n := range at.Nodes {
		state := "up"
		switch {
		case !n.Alive && n.Draining:
			state = "down, drained"
		case !n.Alive:
			state = "down"
		case n.Draining:
			state = "draining"
		}
		nodes = append(nodes, record{
			{"node", n.ID}, {"state", state}, {"zone", n.Zone}, {"address", n.Address}, {"partitions", loads[n.ID].Copies}, {"leads", loads[n.ID].Leads},
		})
	}
	short := 0
	for i := range at.Partitions {
		p := &at.Partitions[i]
		if slices.ContainsFunc(p.Members, func(id int) bool {
			return !slices.ContainsFunc(at.Nodes, func(n placement.Node) bool { return n.ID == id && n.Alive })
		}) {
			short++
		}
		if !p.Resting() {
			moving = append(moving, record{
				{"stream", p.Stream}, {"topic", p.Topic}, {"partition", p.ID}, {"from", fmt.Sprint(p.Members)}, {"to", fmt.Sprint(p.Target)}, {"state", moveState(p)},
			})
		}
	}
	copies, leads := placement.Spread(at)
	return record{
		{"partitions", len(at.Partitions)}, {"under_replicated", short}, {"copies_apart", copies}, {"leads_apart", leads}, {"nodes", nodes}, {"moving", moving},
	}
}

// moveState says in a few words how far a move is.
func moveState(p *placement.Partition) string {
	if len(p.Target) == 0 {
		return "sealed, its successor begins"
	}
	done, of := copiedSoFar(p)
	switch {
	case len(p.Copies) == 0:
		return "begins"
	case of == 0:
		return "looks for its state"
	case slices.ContainsFunc(p.Copies, func(c placement.Copy) bool { return !c.Ready }):
		return fmt.Sprintf("copied %v of %v", bytesCount(done), bytesCount(of))
	}
	return "copied, is about to be sealed"
}

func copiedSoFar(p *placement.Partition) (done, of uint64) {
	for _, c := range p.Copies {
		done, of = done+min(c.Bytes, c.Of), of+c.Of
	}
	return done, of
}
