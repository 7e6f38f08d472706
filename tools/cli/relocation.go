package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/whippet-mq/whippet/libs/placement"
	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
)

const (
	lookEvery = 300 * time.Millisecond
	// settleTime is what a move takes beside its copy: the seal, the successor, the last reports.
	settleTime = 1500 * time.Millisecond
	barWidth   = 24
)

// relocation is a plan being carried out. What it has asked for goes on without it: whoever ends the command loses the
// picture, and the moves that were not asked for yet.
type relocation struct {
	app    *app
	client *client.Client
	plan   bool
	atOnce int
	rate   uint64
	wait   time.Duration

	at      *placement.Cluster
	pending []placement.Move
	active  []placement.Move
	done    int
	lines   int // of the picture on a terminal
	refused map[uint64]error
}

func (r *relocation) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&r.plan, "plan", false, "show what would move, and do nothing")
	f.IntVar(&r.atOnce, "at-once", 4, "partitions that move at the same time")
	f.Uint64Var(&r.rate, "rate", 64<<20, "bytes a second a node copies, for the estimate: the cluster's partition.move_rate")
	f.DurationVar(&r.wait, "stalled", 10*time.Minute, "give up when nothing has moved for so long")
}

// run makes the plan, shows it, and carries it out.
func (r *relocation) run(ctx context.Context, plan planned, args []string) error {
	r.pending, r.active, r.done, r.lines, r.refused = nil, nil, 0, 0, map[uint64]error{}
	if err := r.look(); err != nil {
		return err
	}
	if err := r.sizes(); err != nil {
		return err
	}
	moves, mark, err := plan(r, args)
	if err != nil {
		return err
	}
	r.pending = moves
	if r.plan || r.app.output != "json" {
		if err := r.show(); err != nil || r.plan {
			return err
		}
	}
	if mark != nil {
		if err := mark(); err != nil {
			return err
		}
	}
	return r.carryOut(ctx)
}

// look asks how things are.
func (r *relocation) look() (err error) {
	known := map[uint64]uint64{}
	if r.at != nil {
		for i := range r.at.Partitions {
			known[slotOf(&r.at.Partitions[i])] = r.at.Partitions[i].SizeBytes
		}
	}
	at, err := r.client.Place(placement.Command{Do: placement.DoStatus})
	if err != nil {
		return err
	}
	for i := range at.Partitions {
		at.Partitions[i].SizeBytes = known[slotOf(&at.Partitions[i])]
	}
	r.at = at
	return nil
}

// slotOf names a partition whatever its incarnation.
func slotOf(p *placement.Partition) uint64 { return wire.GroupID(p.Stream, p.Topic, p.ID, 0) }

// sizes asks how large the partitions are.
func (r *relocation) sizes() error {
	type key struct{ stream, topic uint32 }
	asked := map[key]wire.TopicDetails{}
	for i := range r.at.Partitions {
		p := &r.at.Partitions[i]
		k := key{p.Stream, p.Topic}
		d, ok := asked[k]
		if !ok {
			var err error
			d, err = r.client.Topic(wire.NumericID(p.Stream), wire.NumericID(p.Topic))
			if err != nil && !errors.Is(err, client.ErrNotFound) {
				return err
			}
			asked[k] = d
		}
		for _, part := range d.Partitions {
			if part.ID == p.ID {
				p.SizeBytes = part.SizeBytes
			}
		}
	}
	return nil
}

// show prints the plan with what it costs.
func (r *relocation) show() error {
	moves := list{}
	total := uint64(0)
	joins := map[int]uint64{}
	for i := range r.pending {
		m := &r.pending[i]
		total += m.Bytes()
		for _, node := range m.Joins() {
			joins[node] += m.Partition.SizeBytes
		}
		moves = append(moves, record{
			{"stream", m.Partition.Stream}, {"topic", m.Partition.Topic}, {"partition", m.Partition.ID}, {"from", fmt.Sprint(m.Partition.Members)},
			{"to", fmt.Sprint(m.To)}, {"copies", len(m.Joins())}, {"bytes", bytesCount(m.Bytes())},
		})
	}
	slowest := time.Duration(0)
	for _, bytes := range joins {
		slowest = max(slowest, time.Duration(float64(bytes)/float64(max(r.rate, 1))*float64(time.Second)))
	}
	rounds := (len(moves) + max(r.atOnce, 1) - 1) / max(r.atOnce, 1)
	estimate := (slowest + time.Duration(rounds)*settleTime).Round(time.Second)
	return r.app.print(record{{"moves", len(moves)}, {"bytes", bytesCount(total)}, {"estimate", estimate.String()}, {"plan", moves}})
}

// carryOut has the moves made, a few at a time, and shows how far they are.
func (r *relocation) carryOut(ctx context.Context) error {
	total, last := len(r.pending), time.Now()
	seen := ""
	for r.done < total {
		if err := r.look(); err != nil {
			return err
		}
		r.settle()
		if err := r.begin(); err != nil {
			return err
		}
		r.picture(total)
		if now := r.fingerprint(); now != seen {
			seen, last = now, time.Now()
		} else if time.Since(last) > r.wait {
			return fmt.Errorf("nothing has moved for %v; what was asked for goes on, \"whippet cluster status\" shows it: %w", r.wait, errors.Join(r.reasons()...))
		}
		if r.done < total {
			select {
			case <-ctx.Done():
				return fmt.Errorf("ended with %d of %d moved; what was asked for goes on, \"whippet cluster status\" shows it: %w", r.done, total, errors.Join(append(r.reasons(), ctx.Err())...))
			case <-time.After(lookEvery):
			}
		}
	}
	return nil
}

func (r *relocation) reasons() (all []error) {
	for _, err := range r.refused {
		all = append(all, err)
	}
	return all
}

// fingerprint changes while anything moves.
func (r *relocation) fingerprint() string {
	var b strings.Builder
	for i := range r.active {
		if p := r.now(&r.active[i]); p != nil {
			done, _ := copiedSoFar(p)
			fmt.Fprint(&b, p.Group, p.Members, p.Settling, done, ";")
		}
	}
	return fmt.Sprint(r.done, len(r.pending), b.String())
}

// now is a partition of a move as it is, nil when it was deleted.
func (r *relocation) now(m *placement.Move) *placement.Partition {
	for i := range r.at.Partitions {
		if p := &r.at.Partitions[i]; slotOf(p) == slotOf(&m.Partition) {
			return p
		}
	}
	return nil
}

// settle takes the moves off the list that are complete.
func (r *relocation) settle() {
	r.active = slices.DeleteFunc(r.active, func(m placement.Move) bool {
		p := r.now(&m)
		if p != nil && (!p.Resting() || !slices.Equal(p.Members, m.To)) {
			return false
		}
		r.done++
		r.line("moved: %s to %v", title3(&m.Partition), m.To)
		return true
	})
}

func title3(p *placement.Partition) string {
	return fmt.Sprintf("partition %d of topic %d of stream %d", p.ID, p.Topic, p.Stream)
}

// begin asks for the next moves. One that is refused while its partition still settles, or while a node it needs is
// away for a moment, is asked for again.
func (r *relocation) begin() error {
	var later []placement.Move
	for len(r.pending) > 0 && len(r.active) < max(r.atOnce, 1) {
		m := r.pending[0]
		r.pending = r.pending[1:]
		p := r.now(&m)
		if p == nil || slices.Equal(p.Members, m.To) && p.Resting() {
			r.done++
			continue
		}
		if !p.Resting() {
			later = append(later, m)
			continue
		}
		_, err := r.client.Place(placement.Command{Do: placement.DoMove, Group: p.Group, Members: m.To})
		switch {
		case errors.Is(err, client.ErrRefused):
			if _, again := r.refused[slotOf(p)]; !again {
				r.line("not yet: %s to %v: %v", title3(p), m.To, err)
			}
			r.refused[slotOf(p)] = err
			later = append(later, m)
			continue
		case err != nil:
			return err
		}
		delete(r.refused, slotOf(p))
		r.line("moves: %s from %v to %v, %v", title3(p), p.Members, m.To, bytesCount(m.Bytes()))
		r.active = append(r.active, m)
	}
	r.pending = append(r.pending, later...)
	return nil
}

// terminal reports whether a person watches.
func (r *relocation) terminal() bool {
	out, ok := r.app.Out.(*os.File)
	return ok && term.IsTerminal(int(out.Fd()))
}

// line says what happened, where nobody watches a picture.
func (r *relocation) line(format string, args ...any) {
	if !r.terminal() && r.app.output != "json" {
		fmt.Fprintf(r.app.Out, format+"\n", args...)
	}
}

// picture draws the moves under way over the picture before.
func (r *relocation) picture(total int) {
	if !r.terminal() || r.app.output == "json" {
		return
	}
	var b strings.Builder
	if r.lines > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\x1b[J", r.lines)
	}
	fmt.Fprintf(&b, "%s %d of %d moved\n", bar(uint64(r.done), uint64(total)), r.done, total)
	r.lines = 1
	for i := range r.active {
		m := &r.active[i]
		if p := r.now(m); p != nil {
			done, of := copiedSoFar(p)
			if len(p.Target) == 0 {
				done, of = 1, 1
			}
			fmt.Fprintf(&b, "%s %s to %v: %s\n", bar(done, of), title3(p), m.To, moveState(p))
			r.lines++
		}
	}
	fmt.Fprint(r.app.Out, b.String())
}

func bar(done, of uint64) string {
	full := 0
	if of > 0 {
		full = int(min(done, of) * barWidth / of)
	}
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", barWidth-full) + "]"
}
