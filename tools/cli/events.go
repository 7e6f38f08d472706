package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/whippet-mq/whippet/libs/control"
)

// eventsCommand shows what happens in a cluster.
func (a *app) eventsCommand() *cobra.Command {
	l := &listener{app: a, loud: true}
	var follow bool
	var during time.Duration
	cmd := &cobra.Command{
		Use: "events", Short: "Show what happens in the cluster: leads, silent nodes, moves, evictions, trouble", Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			heard, err := l.open(ctx)
			if err != nil {
				return err
			}
			var end <-chan time.Time
			if !follow {
				end = time.After(during)
			}
			seqs := map[string]uint64{}
			for {
				select {
				case m := <-heard:
					if err := a.printEvents(&m, seqs); err != nil {
						return err
					}
				case <-end:
					return nil
				case <-ctx.Done():
					return nil
				}
			}
		},
	}
	l.flags(cmd)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until it is ended")
	cmd.Flags().DurationVar(&during, "for", 3*time.Second, "how long to listen without --follow")
	return cmd
}

// printEvents writes one line for each event of a message, and one for messages that did not arrive.
func (a *app) printEvents(m *control.Message, seqs map[string]uint64) error {
	last, known := seqs[m.Source.Process]
	seqs[m.Source.Process] = m.Seq
	if gap := m.Seq - last - 1; known && m.Seq > last+1 && a.output != "json" {
		if _, err := fmt.Fprintf(a.Out, "%s  %s  %d messages did not arrive\n", clock(m.At), who(&m.Source), gap); err != nil {
			return err
		}
	}
	for i := range m.Events {
		e := &m.Events[i]
		if a.output != "json" {
			if _, err := fmt.Fprintln(a.Out, eventLine(&m.Source, e)); err != nil {
				return err
			}
			continue
		}
		err := json.NewEncoder(a.Out).Encode(struct {
			Source control.Source `json:"source"`
			control.Event
		}{m.Source, *e})
		if err != nil {
			return err
		}
	}
	return nil
}

func clock(at int64) string { return time.UnixMicro(at).Format("15:04:05.000") }

// who names a process as people call it.
func who(s *control.Source) string {
	if s.Node != nil {
		return fmt.Sprintf("%s %d", s.Role, *s.Node)
	}
	return s.Role + " " + s.Ops
}

// eventLine tells an event in a sentence.
func eventLine(s *control.Source, e *control.Event) string {
	return clock(e.At) + "  " + who(s) + "  " + sentence(s, e)
}

func sentence(s *control.Source, e *control.Event) string {
	node := "a node"
	if e.Node != nil {
		node = fmt.Sprintf("node %d", *e.Node)
	}
	why := ""
	if e.Reason != "" {
		why = ": " + e.Reason
	}
	switch e.Kind {
	case control.Starting:
		return "starts, version " + s.Version
	case control.Ready:
		return "is ready"
	case control.Stopping:
		return "stops" + why
	case control.Registered:
		return "is registered as " + node
	case control.Heard:
		return "hears " + node
	case control.Silent:
		return "does not hear " + node + " any more"
	case control.Restarted:
		return "hears a new life of " + node
	case control.Leads:
		return fmt.Sprintf("leads %s now (view %d)", groups(e), e.View)
	case control.Follows:
		return fmt.Sprintf("leads %s no more (view %d)", groups(e), e.View)
	case control.Moving:
		return progressLine(e.Progress)
	case control.Evicted:
		return fmt.Sprintf("ended %s%s", count(e.Count, "session"), why)
	case control.DiskFull:
		return "refuses sends: its disk is nearly full"
	case control.DiskRoom:
		return "takes sends again: there is room on its disk"
	case control.Damaged:
		return groups(e) + " can not be read" + why
	case control.LossAccepted:
		return "lost power: acknowledged messages of the last second before it may be missing" + why
	case control.TransferBegan:
		return "fetches " + groups(e) + " from " + node
	case control.TransferEnded:
		return "has fetched " + groups(e) + " from " + node
	case control.TransferFailed:
		return "could not fetch " + groups(e) + " from " + node + why
	}
	return string(e.Kind) + why // of a later version
}

func groups(e *control.Event) string {
	switch {
	case len(e.Groups) == 0:
		return "nothing"
	case e.Groups[0] == control.MetadataGroup:
		return "the metadata"
	case e.Count == 1:
		return "partition " + e.Groups[0]
	}
	more := ""
	if e.Count > uint64(len(e.Groups)) {
		more = ", …"
	}
	return fmt.Sprintf("%d partitions (%s%s)", e.Count, strings.Join(e.Groups, ", "), more)
}

func count(n uint64, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

func progressLine(p *control.Progress) string {
	if p == nil {
		return "moves data"
	}
	line := p.Task + ": " + p.Phase
	if p.Total > 0 {
		line += fmt.Sprintf(", %v of %v (%d%%)", bytesCount(p.Done), bytesCount(p.Total), 100*p.Done/p.Total)
	}
	if p.Left > 0 {
		line += ", " + (time.Duration(p.Left) * time.Microsecond).Round(time.Second).String() + " left"
	}
	return line
}
