package cluster

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
	"github.com/whippet-mq/whippet/tools/local"
)

var officialSource = flag.String("official", "", "TestKill: directory with the source of the official Go client, which sends too")

const (
	officialStream     = "official"
	officialPartitions = 3
	officialProducers  = 4
	officialEnd        = 45 * time.Second
)

// official is the official Go client at work in a process of its own (tools/clienttests/official).
type official struct {
	cluster *local.Cluster
	stop    io.Closer
	kill    func()
	ended   chan error

	mu    sync.Mutex
	acked map[uint64]place // by first message
	sends map[uint64]uint64
	open  int
	word  string // the last error
}

// place is where a batch was confirmed to be.
type place struct {
	partition uint32
	offset    uint64
}

// sendOfficially starts the official client; nil when it was not asked for.
func sendOfficially(t *testing.T, c *local.Cluster) *official {
	t.Helper()
	if *officialSource == "" {
		return nil
	}
	one := connect(t, c.Process(doors(c)[0]).TCP)
	if _, err := one.CreateStream(officialStream); err != nil {
		t.Fatal(err)
	}
	if _, err := one.CreateTopic(wire.CreateTopicRequest{
		Stream: wire.NamedID(officialStream), PartitionsCount: officialPartitions, Name: []byte("t"),
	}); err != nil {
		t.Fatal(err)
	}
	o := &official{cluster: c, ended: make(chan error, 1), acked: map[uint64]place{}, sends: map[uint64]uint64{}}
	command := exec.Command(buildOfficial(t), "-addresses", strings.Join(o.addresses(t), ","), "-stream", officialStream,
		"-partitions", strconv.Itoa(officialPartitions))
	stop, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	o.stop, o.kill = stop, func() { _ = command.Process.Kill() }
	go func() {
		err := o.listen(said)
		if ended := command.Wait(); err == nil {
			err = ended
		}
		o.ended <- err
	}()
	t.Cleanup(func() { _ = stop.Close() })
	return o
}

// buildOfficial builds the program with the client from the named directory.
func buildOfficial(t *testing.T) string {
	t.Helper()
	source, err := filepath.Abs(*officialSource)
	if err != nil {
		t.Fatal(err)
	}
	program, err := filepath.Abs("../clienttests/official")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	work := fmt.Sprintf("go 1.26\n\nuse %s\n\nreplace github.com/apache/iggy/foreign/go => %s\n", program, source)
	if err := os.WriteFile(filepath.Join(dir, "go.work"), []byte(work), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "official"), ".")
	build.Dir, build.Env = program, append(os.Environ(), "GOWORK="+filepath.Join(dir, "go.work"))
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return filepath.Join(dir, "official")
}

// addresses are where the producers connect: to nodes, or to a balancer in front of front-doors, which have another
// port after each start.
func (o *official) addresses(t *testing.T) (all []string) {
	t.Helper()
	d := doors(o.cluster)
	if d[0].Role == local.AllRole {
		for i := range officialProducers {
			all = append(all, o.cluster.Process(d[i%len(d)]).TCP)
		}
		return all
	}
	return slices.Repeat([]string{balance(t, o.cluster)}, officialProducers)
}

// balance listens and passes connections on to the next front-door that is open.
func balance(t *testing.T, c *local.Cluster) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	var turn atomic.Int64
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = client.Close() }()
				d := doors(c)
				for next, i := int(turn.Add(1)), 0; i < len(d); i++ {
					p := c.Process(d[(next+i)%len(d)])
					if !p.Ready {
						continue
					}
					if door, err := net.DialTimeout("tcp", p.TCP, time.Second); err == nil {
						relay(client, door)
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// relay passes bytes both ways until one side ends.
func relay(a, b net.Conn) {
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_, _ = a.Close(), b.Close()
		})
	}
	both.Wait()
}

// listen takes down what the client says became of its sends.
func (o *official) listen(said io.Reader) error {
	for lines := bufio.NewScanner(said); lines.Scan(); {
		f := strings.SplitN(lines.Text(), " ", 4)
		if len(f) < 4 {
			return fmt.Errorf("not understood: %q", lines.Text())
		}
		first, err := strconv.ParseUint(f[1], 10, 64)
		if err != nil {
			return err
		}
		count, err := strconv.ParseUint(f[2], 10, 64)
		if err != nil {
			return err
		}
		o.mu.Lock()
		o.sends[first] = count
		switch f[0] {
		case "acked":
			var at place
			_, err = fmt.Sscan(f[3], &at.partition, &at.offset)
			o.acked[first] = at
		case "open":
			o.open++
			o.word = f[3]
		}
		o.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// summary is a row of the table.
func (o *official) summary() string {
	if o == nil {
		return ""
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return fmt.Sprintf("; official client: %d sends acknowledged, %d open, the last: %s", len(o.acked), o.open, o.word)
}

// check ends the client and compares what is there with what it was told: every acknowledged message at its offset,
// no message twice, whatever became of its send, and none that was never sent.
func (o *official) check(t *testing.T) {
	t.Helper()
	if o == nil {
		return
	}
	_ = o.stop.Close()
	select {
	case err := <-o.ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(officialEnd): // it may wait for an answer so long, and connect for ever
		t.Log("the official client does not end, and is ended")
		o.kill()
		<-o.ended
	}
	found := o.read(t)
	lost, moved, twice, unknown := 0, 0, 0, 0
	for first, at := range o.acked {
		for i := range o.sends[first] {
			switch places := found[first+i]; {
			case len(places) == 0:
				lost++
			case places[0] != place{at.partition, at.offset + i}:
				moved++
			}
		}
	}
	sent := map[uint64]bool{}
	for first, count := range o.sends {
		for i := range count {
			sent[first+i] = true
		}
	}
	for id, places := range found {
		if len(places) > 1 {
			twice++
		}
		if !sent[id] {
			unknown++
		}
	}
	t.Logf("official client: %d sends acknowledged, %d open; messages: %d found, %d lost, %d at another offset, %d twice, %d unknown",
		len(o.acked), o.open, len(found), lost, moved, twice, unknown)
	if len(o.acked) == 0 || lost+moved+twice+unknown > 0 {
		t.Error("the official client was told something else")
	}
}

// read polls everything there is, by message.
func (o *official) read(t *testing.T) map[uint64][]place {
	t.Helper()
	c := connect(t, o.cluster.Process(doors(o.cluster)[0]).TCP)
	found := map[uint64][]place{}
	for partition := range uint32(officialPartitions) {
		for next := uint64(0); ; {
			poll, err := c.Poll(wire.PollMessagesRequest{
				Consumer: wire.Consumer{Kind: wire.ConsumerSingle, ID: wire.NumericID(1)}, Stream: wire.NamedID(officialStream), Topic: wire.NamedID("t"),
				Partition: wire.SelectPartition(partition), Strategy: wire.Strategy{Kind: wire.StrategyOffset, Value: next}, Count: 10_000,
			})
			if err != nil {
				t.Fatal(err)
			}
			if poll.MessagesCount == 0 {
				break
			}
			next = take(t, poll, partition, next, found)
		}
	}
	return found
}

// take notes the messages of a poll and returns the offset behind them.
func take(t *testing.T, poll client.Polled, partition uint32, next uint64, found map[uint64][]place) uint64 {
	t.Helper()
	for m, err := range poll.Messages(true) {
		if err != nil {
			t.Fatal(err)
		}
		id := m.ID.Lo - 1
		if m.Offset != next || string(m.Payload) != strconv.FormatUint(id, 10) {
			t.Fatalf("message %d says %q at offset %d, %d is due", id, m.Payload, m.Offset, next)
		}
		found[id] = append(found[id], place{partition, m.Offset})
		next++
	}
	return next
}
