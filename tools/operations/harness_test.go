package operations

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/client"
	"github.com/whippet-mq/whippet/tools/process"
)

// serverBinary is the server under test.
var serverBinary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "operations")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if serverBinary, err = process.Build(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// server is a running process.
type server struct {
	*process.Server
	t *testing.T
}

// start runs a server with more variables; root is iggy / iggy unless they say otherwise.
func start(t *testing.T, dir string, env map[string]string) server {
	t.Helper()
	s := server{process.New(serverBinary, dir, env), t}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Kill() })
	return s
}

// connect logs in.
func (s server) connect(username, password string) *client.Client {
	s.t.Helper()
	c, err := client.Dial(context.Background(), client.Options{Address: s.Address(), Username: username, Password: password})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

// ops fetches a page of the ops endpoint, wherever it is bound.
func (s server) ops(path string) (int, string) {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.Data(), "runtime", "current_config.toml"))
	if err != nil {
		s.t.Fatal(err)
	}
	var current struct{ Ops struct{ Address string } }
	if err := toml.Unmarshal(text, &current); err != nil {
		s.t.Fatal(err)
	}
	response, err := http.Get("http://" + current.Ops.Address + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

var stream, topic = wire.NamedID("first"), wire.NamedID("events")

// fill makes a topic and sends n messages, whose payloads are their numbers.
func fill(t *testing.T, c *client.Client, n int) {
	t.Helper()
	if _, err := c.CreateStream("first"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateTopic(wire.CreateTopicRequest{Stream: stream, Name: []byte("events"), PartitionsCount: 1}); err != nil {
		t.Fatal(err)
	}
	var batch client.Batch
	batch.Reset(1)
	for i := range n {
		batch.Add(wire.U128{}, fmt.Append(nil, i), nil)
	}
	to := wire.Partitioning{Kind: wire.PartitioningPartition}
	if _, err := c.Send(stream, topic, to, batch.Seal()); err != nil {
		t.Fatal(err)
	}
}

// expect polls from the start and wants exactly the messages of fill.
func expect(t *testing.T, c *client.Client, n int) {
	t.Helper()
	polled, err := c.Poll(wire.PollMessagesRequest{
		Consumer: wire.Consumer{Kind: 1, ID: wire.NumericID(1)}, Stream: stream, Topic: topic, Partition: wire.SelectPartition(0),
		Strategy: wire.Strategy{Kind: 1}, Count: uint32(n) + 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for m, err := range polled.Messages(true) {
		if err != nil {
			t.Fatal(err)
		}
		if m.Offset != uint64(found) || string(m.Payload) != fmt.Sprint(found) {
			t.Errorf("message %d has offset %d and payload %q", found, m.Offset, m.Payload)
		}
		found++
	}
	if found != n {
		t.Errorf("%d messages, want %d", found, n)
	}
}

// run starts a server that is to end by itself and returns its exit code and output.
func run(t *testing.T, env []string, args ...string) (int, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), serverBinary, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "IGGY_SYSTEM_PATH=" + t.TempDir(), "IGGY_TCP_ADDRESS=127.0.0.1:0", "IGGY_HTTP_ADDRESS=127.0.0.1:0", "IGGY_QUIC_ADDRESS=127.0.0.1:0", "IGGY_WEBSOCKET_ADDRESS=127.0.0.1:0", "WHIPPET_OPS_ADDRESS=127.0.0.1:0"}, env...)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func contains(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q is missing in:\n%s", w, text)
		}
	}
}
