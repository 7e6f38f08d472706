package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
)

const followPause = 100 * time.Millisecond // between two polls when there is nothing new

// consumeFlags say what is read and how it is shown.
type consumeFlags struct {
	partition int64
	from      string
	count     int64
	follow    bool
	group     string
	consumer  string
	commit    bool
	verbose   bool
	batch     uint32
}

func (a *app) consumeCommand() *cobra.Command {
	var o consumeFlags
	cmd := &cobra.Command{
		Use: "consume STREAM TOPIC", Short: "Read messages and print their payloads, one a line",
		Long: "Reads the partition given, or all partitions one after the other, up to their ends; with --follow for ever.\n" +
			"With --group it joins the group, reads what the group gives it, and commits. JSON output has a message a line.",
		Args: usage(cobra.ExactArgs(2)), ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := a.newReader(args, &o)
			if err != nil {
				return err
			}
			if r.client, err = a.connect(cmd.Context()); err != nil {
				return err
			}
			defer r.client.Close()
			return r.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.Int64Var(&o.partition, "partition", -1, "partition to read; below 0: all")
	f.StringVar(&o.from, "from", "", "first, last, next, a number (offset), or a time such as 2026-01-31T12:00:00Z or 15m (ago)")
	f.Int64VarP(&o.count, "count", "n", 0, "stop after so many messages; with --from last: the newest so many of each partition")
	f.BoolVar(&o.follow, "follow", false, "wait for more at the end")
	f.StringVar(&o.group, "group", "", "read as a member of this group")
	f.StringVar(&o.consumer, "consumer", "whippet", "name or number whose stored offset --from next uses")
	f.BoolVar(&o.commit, "commit", false, "store the offset of what was read")
	f.BoolVar(&o.verbose, "verbose", false, "print partition, offset, time and headers too")
	f.Uint32Var(&o.batch, "batch", 100, "messages per request")
	return cmd
}

// reader is one consume command under way.
type reader struct {
	*app
	*consumeFlags
	client  *client.Client
	query   wire.PollMessagesRequest
	printed int64
}

func (a *app) newReader(args []string, o *consumeFlags) (*reader, error) {
	ids, err := identifiers(args...)
	if err != nil {
		return nil, err
	}
	r := &reader{app: a, consumeFlags: o}
	r.query = wire.PollMessagesRequest{
		Consumer: wire.Consumer{Kind: wire.ConsumerSingle}, Stream: ids[0], Topic: ids[1], Count: max(1, o.batch), AutoCommit: o.commit,
	}
	owner := o.consumer
	if o.group != "" {
		r.query.Consumer.Kind, r.query.AutoCommit, owner = wire.ConsumerGroup, true, o.group
		if o.from == "" {
			o.from = "next"
		}
	}
	if r.query.Consumer.ID, err = identifier(owner); err != nil {
		return nil, err
	}
	r.query.Strategy, err = parseStart(o.from)
	if r.query.Strategy.Kind == wire.StrategyLast && o.count > 0 {
		r.query.Count = uint32(min(o.count, 1<<20))
	}
	return r, err
}

// parseStart reads where to begin.
func parseStart(text string) (wire.Strategy, error) {
	switch text {
	case "", "first":
		return wire.Strategy{Kind: wire.StrategyFirst}, nil
	case "last":
		return wire.Strategy{Kind: wire.StrategyLast}, nil
	case "next":
		return wire.Strategy{Kind: wire.StrategyNext}, nil
	}
	if offset, err := strconv.ParseUint(text, 10, 64); err == nil {
		return wire.Strategy{Kind: wire.StrategyOffset, Value: offset}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return wire.Strategy{Kind: wire.StrategyTimestamp, Value: uint64(at.UnixMicro())}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil {
		return wire.Strategy{Kind: wire.StrategyTimestamp, Value: uint64(time.Now().Add(-ago).UnixMicro())}, nil
	}
	return wire.Strategy{}, usageError{fmt.Errorf("--from %q: want first, last, next, an offset, a time or a duration", text)}
}

func (r *reader) run(ctx context.Context) error {
	if r.group != "" {
		return r.readGroup(ctx)
	}
	partitions, err := r.partitions()
	if err != nil {
		return err
	}
	cursors := make([]wire.PollMessagesRequest, len(partitions))
	for i, p := range partitions {
		cursors[i] = r.query
		cursors[i].Partition = wire.SelectPartition(p)
	}
	for ctx.Err() == nil && !r.done() {
		found := false
		for i := range cursors {
			more, err := r.drain(ctx, &cursors[i])
			if err != nil {
				return err
			}
			found = found || more
		}
		if !r.follow {
			return nil
		}
		if !found {
			wait(ctx, followPause)
		}
	}
	return nil
}

func (r *reader) partitions() ([]uint32, error) {
	if r.partition >= 0 {
		return []uint32{uint32(r.partition)}, nil
	}
	d, err := r.client.Topic(r.query.Stream, r.query.Topic)
	if err != nil {
		return nil, err
	}
	var out []uint32
	for _, p := range d.Partitions {
		out = append(out, p.ID)
	}
	return out, nil
}

// drain reads a partition to its end and moves q behind it.
func (r *reader) drain(ctx context.Context, q *wire.PollMessagesRequest) (found bool, err error) {
	for ctx.Err() == nil && !r.done() {
		if left := r.count - r.printed; r.count > 0 && left < int64(q.Count) {
			q.Count = uint32(left)
		}
		p, err := r.client.Poll(*q)
		if err != nil || p.MessagesCount == 0 {
			return found, err
		}
		found = true
		next, err := r.show(p)
		if err != nil {
			return found, err
		}
		q.Strategy = wire.Strategy{Kind: wire.StrategyOffset, Value: next}
	}
	return found, nil
}

func (r *reader) done() bool { return r.count > 0 && r.printed >= r.count }

// readGroup joins the group, reads what it is given, and leaves again.
func (r *reader) readGroup(ctx context.Context) error {
	t := wire.GroupTarget{Stream: r.query.Stream, Topic: r.query.Topic, Group: r.query.Consumer.ID}
	err := r.client.JoinGroup(t)
	if errors.Is(err, wire.CodeConsumerGroupIdNotFound) && t.Group.IsNamed() {
		if _, err = r.client.CreateGroup(wire.CreateGroupRequest{Stream: t.Stream, Topic: t.Topic, Name: t.Group.Name}); err == nil {
			err = r.client.JoinGroup(t)
		}
	}
	if err != nil {
		return err
	}
	defer func() { _ = r.client.LeaveGroup(t) }() // the end of the connection does the same
	var generation uint64
	var cursors map[uint32]*wire.PollMessagesRequest // of the partitions owned in this generation
	for ctx.Err() == nil && !r.done() {
		owned, err := r.client.SyncGroup(t)
		if err != nil {
			return err
		}
		if cursors == nil || owned.Generation != generation {
			generation, cursors = owned.Generation, map[uint32]*wire.PollMessagesRequest{}
		}
		found := false
		for _, p := range owned.Partitions {
			if cursors[p] == nil {
				q := r.query
				q.Partition = wire.SelectPartition(p)
				cursors[p] = &q
			}
			more, err := r.drain(ctx, cursors[p])
			if err != nil {
				return err
			}
			found = found || more
		}
		if !found && !r.follow {
			return nil
		}
		if !found {
			wait(ctx, followPause)
		}
	}
	return nil
}

// show prints the messages of a poll and returns the offset behind the last.
func (r *reader) show(p client.Polled) (next uint64, err error) {
	for m, err := range p.Messages(true) {
		if err != nil {
			return next, err
		}
		next = m.Offset + 1
		if r.done() {
			continue
		}
		r.printed++
		if err := r.showOne(p.Partition, m); err != nil {
			return next, err
		}
	}
	return next, nil
}

func (r *reader) showOne(partition uint32, m client.Message) (err error) {
	headers := headerFields(m.Headers)
	switch {
	case r.output == "json":
		line, err := json.Marshal(record{
			{"partition", partition}, {"offset", m.Offset}, {"id", fmt.Sprintf("%016x%016x", m.ID.Hi, m.ID.Lo)},
			{"timestamp", instant(m.Timestamp)}, {"origin_timestamp", instant(m.Origin)}, {"headers", headers}, payloadField(m.Payload),
		})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(r.Out, "%s\n", line)
		return err
	case r.verbose:
		var words []string
		for _, h := range headers {
			words = append(words, fmt.Sprintf("%s=%v", h.Name, h.Value))
		}
		_, err = fmt.Fprintf(r.Out, "%d:%d %s [%s] %s\n", partition, m.Offset, instant(m.Timestamp), strings.Join(words, " "), m.Payload)
		return err
	}
	_, err = fmt.Fprintf(r.Out, "%s\n", m.Payload)
	return err
}

// payloadField shows text as text and everything else as base64.
func payloadField(payload []byte) field {
	if utf8.Valid(payload) {
		return field{"payload", string(payload)}
	}
	return field{"payload_base64", payload}
}

// headerFields shows a user header block; one that is none is shown as bytes.
func headerFields(block []byte) record {
	if len(block) == 0 {
		return record{}
	}
	options, err := wire.DecodeOptions(block)
	if err != nil {
		return record{{"raw", fmt.Sprintf("%x", block)}}
	}
	var out record
	for p := range options.All() {
		out = append(out, field{string(p.Key), optionText(p.ValueKind, p.Value)})
	}
	return out
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
