package cli

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
)

const (
	sendBytes = 1 << 20 // a batch goes out when it is this large,
	sendPause = 200 * time.Millisecond
	maxLine   = 32 << 20 // bytes of one message
)

// produceFlags say what is sent where.
type produceFlags struct {
	file      string
	whole     bool
	batch     int
	partition int64
	key       string
	headers   []string
}

func (a *app) produceCommand() *cobra.Command {
	var o produceFlags
	cmd := &cobra.Command{
		Use: "produce STREAM TOPIC [MESSAGE...]", Short: "Send messages: the arguments, or the lines of a file or of standard input",
		Args: usage(cobra.MinimumNArgs(2)), ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.newSender(cmd, args, &o)
			if err != nil {
				return err
			}
			defer p.client.Close()
			if err := p.sendAll(cmd, args[2:], &o); err != nil {
				return fmt.Errorf("after %d messages: %w", p.sent, err)
			}
			return a.print(record{{"messages", p.sent}, {"bytes", p.bytes}, {"last_partition", p.last.Partition}, {"last_base_offset", p.last.BaseOffset}})
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.file, "file", "f", "", "read from this file instead of standard input")
	f.BoolVar(&o.whole, "whole", false, "send the input as one message instead of line by line")
	f.IntVar(&o.batch, "batch", 1000, "messages per request at most")
	f.Int64Var(&o.partition, "partition", -1, "partition to send to; below 0 the server chooses")
	f.StringVar(&o.key, "key", "", "let this key choose the partition")
	f.StringArrayVar(&o.headers, "header", nil, "user header of every message as KEY=VALUE")
	return cmd
}

// sender gathers messages into batches.
type sender struct {
	client        *client.Client
	stream, topic wire.Identifier
	to            wire.Partitioning
	headers       []byte
	limit         int
	batch         client.Batch
	began         time.Time // when the batch got its first message
	progress      *progress

	sent, bytes int64
	last        wire.Confirmation
}

func (a *app) newSender(cmd *cobra.Command, args []string, o *produceFlags) (*sender, error) {
	ids, err := identifiers(args[0], args[1])
	if err != nil {
		return nil, err
	}
	s := &sender{stream: ids[0], topic: ids[1], limit: max(1, o.batch)}
	if s.to, err = o.partitioning(); err != nil {
		return nil, err
	}
	for _, text := range o.headers {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" || value == "" || len(key) > wire.MaxTLVField || len(value) > wire.MaxTLVField {
			return nil, usageError{fmt.Errorf("--header %q: want KEY=VALUE, each of 1 to %d bytes", text, wire.MaxTLVField)}
		}
		pair := wire.Pair{KeyKind: wire.KindString, Key: []byte(key), ValueKind: wire.KindString, Value: []byte(value)}
		s.headers = pair.Append(s.headers)
	}
	s.client, err = a.connect(cmd.Context())
	return s, err
}

func (o *produceFlags) partitioning() (wire.Partitioning, error) {
	switch {
	case o.key != "" && o.partition >= 0:
		return wire.Partitioning{}, usageError{errors.New("give either --key or --partition")}
	case len(o.key) > wire.MaxName || o.partition > 1<<32-1:
		return wire.Partitioning{}, usageError{errors.New("--key has 1 to 255 bytes, --partition is a 32-bit number")}
	case o.key != "":
		return wire.Partitioning{Kind: wire.PartitioningKey, Key: []byte(o.key)}, nil
	case o.partition >= 0:
		return wire.Partitioning{Kind: wire.PartitioningPartition, Partition: uint32(o.partition)}, nil
	}
	return wire.Partitioning{Kind: wire.PartitioningBalanced}, nil
}

func (s *sender) sendAll(cmd *cobra.Command, messages []string, o *produceFlags) error {
	if len(messages) > 0 {
		for _, m := range messages {
			if err := s.add([]byte(m)); err != nil {
				return err
			}
		}
		return s.flush()
	}
	in, size := cmd.InOrStdin(), int64(0)
	if o.file != "" {
		f, err := os.Open(o.file)
		if err != nil {
			return usageError{err}
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil {
			size = info.Size()
		}
		in = f
	}
	s.progress = newProgress(cmd.ErrOrStderr(), size)
	defer s.progress.end()
	if o.whole {
		b, err := io.ReadAll(io.LimitReader(in, maxLine+1))
		if err != nil {
			return err
		}
		if len(b) > maxLine {
			return usageError{fmt.Errorf("a message has at most %d bytes", maxLine)}
		}
		if err := s.add(b); err != nil {
			return err
		}
		return s.flush()
	}
	return s.sendLines(cmd, in)
}

// sendLines sends every line as a message. What waits goes out when a batch is full, when it has
// waited sendPause, and when the input ends.
func (s *sender) sendLines(cmd *cobra.Command, in io.Reader) error {
	lines, failed := readLines(in)
	tick := time.NewTicker(sendPause)
	defer tick.Stop()
	for {
		select {
		case line, more := <-lines:
			if !more {
				return errors.Join(<-failed, s.flush())
			}
			if err := s.add(line); err != nil {
				return err
			}
		case <-tick.C:
			if s.batch.Len() > 0 && time.Since(s.began) >= sendPause {
				if err := s.flush(); err != nil {
					return err
				}
			}
		case <-cmd.Context().Done():
			return errors.Join(cmd.Context().Err(), s.flush())
		}
	}
}

// readLines hands the input on line by line; reading may block for ever, sending must not.
func readLines(in io.Reader) (<-chan []byte, <-chan error) {
	lines, failed := make(chan []byte, 1024), make(chan error, 1)
	go func() {
		defer close(failed)
		defer close(lines)
		scanner := bufio.NewScanner(in)
		scanner.Buffer(make([]byte, 64<<10), maxLine)
		for scanner.Scan() {
			lines <- append([]byte{}, scanner.Bytes()...)
		}
		if err := scanner.Err(); err != nil {
			failed <- err
		}
	}()
	return lines, failed
}

func (s *sender) add(payload []byte) error {
	if s.batch.Len() > 0 && s.batch.Size()+len(payload) > sendBytes {
		if err := s.flush(); err != nil {
			return err
		}
	}
	if s.batch.Len() == 0 {
		s.began = time.Now()
		s.batch.Reset(uint64(s.began.UnixMicro()))
	}
	var id [16]byte
	rand.Read(id[:])
	s.batch.Add(wire.DecodeU128(id[:]), payload, s.headers)
	s.bytes += int64(len(payload))
	if s.batch.Len() >= s.limit {
		return s.flush()
	}
	return nil
}

func (s *sender) flush() (err error) {
	if s.batch.Len() == 0 {
		return nil
	}
	if s.last, err = s.client.Send(s.stream, s.topic, s.to, s.batch.Seal()); err != nil {
		return err
	}
	s.sent += int64(s.batch.Len())
	s.batch.Reset(0)
	s.progress.show(s.sent, s.bytes)
	return nil
}

// progress draws a bar on a terminal, and nothing elsewhere.
type progress struct {
	out     io.Writer
	size    int64 // bytes expected, 0 for unknown
	started time.Time
	drawn   time.Time
}

func newProgress(out io.Writer, size int64) *progress {
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return &progress{out: out, size: size, started: time.Now()}
}

func (p *progress) show(messages, bytes int64) {
	const every = 100 * time.Millisecond
	if p == nil || time.Since(p.drawn) < every {
		return
	}
	p.drawn = time.Now()
	rate := float64(messages) / max(time.Since(p.started).Seconds(), 1e-3)
	fmt.Fprintf(p.out, "\r%s %d messages, %s, %.0f/s \x1b[K", p.bar(bytes), messages, bytesCount(bytes), rate)
}

func (p *progress) bar(bytes int64) string {
	const width = 30
	if p.size <= 0 {
		return ""
	}
	done := int(min(bytes, p.size) * width / p.size)
	return "[" + strings.Repeat("#", done) + strings.Repeat(".", width-done) + "]"
}

func (p *progress) end() {
	if p != nil {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
