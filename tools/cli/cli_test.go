package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
	"github.com/whippet-mq/whippet/tools/process"
)

// shell runs command lines as a person would.
type shell struct {
	t   *testing.T
	env map[string]string
	dir string
}

func (s *shell) run(input string, args ...string) (out, errs string, code int) {
	var o, e bytes.Buffer
	code = Run(context.Background(), Environment{
		Version: "test", In: strings.NewReader(input), Out: &o, Err: &e,
		Getenv: func(k string) string { return s.env[k] }, Contexts: filepath.Join(s.dir, "contexts.toml"),
	}, args)
	return o.String(), e.String(), code
}

// do runs a command line that must succeed.
func (s *shell) do(line string) string {
	s.t.Helper()
	out, errs, code := s.run("", strings.Fields(line)...)
	if code != exitDone {
		s.t.Fatalf("%s: exit code %d: %s", line, code, errs)
	}
	return out
}

func TestAgainstServer(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server process")
	}
	bin, err := process.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	server := process.New(bin, t.TempDir(), nil)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Kill()
	s := &shell{t, map[string]string{}, t.TempDir()}
	s.do("context set local --address " + server.Address() + " --username iggy --password iggy")
	if out := s.do("context list"); strings.Count(out, "iggy") != 1 || !strings.Contains(out, "password") {
		t.Errorf("contexts:\n%s", out)
	}

	steps := []struct{ line, want string }{
		{"ping", server.Address()},
		{"health", "true"},
		{"stream create orders", "orders"},
		{"stream list", "orders"},
		{"topic create orders new --partitions 2 --message-expiry 7d --durability persisted", "168h0m0s"},
		{"topic get orders new", "durability"},
		{"partition create orders new 1", ""},
		{"topic list orders", "3"},
		{"produce orders new one two --partition 1 --header kind=test", "2"},
		{"consume orders new", "one\ntwo\n"},
		{"consume orders new --verbose --partition 1 -n 1", "kind=test"},
		{"consume orders new --partition 1 --from 1", "two\n"},
		{"group create orders new readers", "readers"},
		{"consume orders new --group readers", "one\ntwo\n"},
		{"group get orders new readers", "members count"},
		{"offset set orders new 1 1 --consumer c", ""},
		{"offset get orders new 1 --consumer c", "stored offset"},
		{"offset delete orders new 1 --consumer c", ""},
		{"user create ann secret", "ann"},
		{"permissions set ann --global read_streams --stream orders=poll_messages --topic orders/new=all", ""},
		{"permissions get ann", "poll_messages"},
		{"user update ann --status inactive", ""},
		{"user get ann", "inactive"},
		{"permissions clear ann", ""},
		{"token create laptop --expiry 1h", "laptop"},
		{"token list", "laptop"},
		{"token delete laptop", ""},
		{"options", "message_expiry"},
		{"cluster", "leader"},
		{"stats", "server version"},
		{"me", "tcp"},
		{"client list", "tcp"},
		{"topic update orders new --name newer", ""},
		{"topic get orders newer", "newer"},
		{"topic purge orders newer", ""},
		{"segment delete orders newer 0 1", ""},
		{"stream rename orders sales", ""},
		{"stream delete sales", ""},
		{"user delete ann", ""},
		{"stream list", "none"},
	}
	for _, step := range steps {
		if out := s.do(step.line); !strings.Contains(out, step.want) {
			t.Errorf("%s: want %q in\n%s", step.line, step.want, out)
		}
	}
	t.Run("input", func(t *testing.T) { producesInput(t, s) })
	t.Run("exit codes", func(t *testing.T) { exitsWith(t, s) })
}

// producesInput sends lines and a whole file, and reads them back as JSON.
func producesInput(t *testing.T, s *shell) {
	s.do("stream create in")
	s.do("topic create in t")
	if _, errs, code := s.run("a\nb\n\nc", "produce", "in", "t"); code != 0 {
		t.Fatal(errs)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("x\ny\xff"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.do("produce in t --whole --file " + file)
	var payloads []string
	for line := range strings.Lines(s.do("consume in t -o json")) {
		var m struct {
			Offset  uint64
			Payload string
			Base64  []byte `json:"payload_base64"`
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		payloads = append(payloads, m.Payload+string(m.Base64))
	}
	if got := strings.Join(payloads, "|"); got != "a|b||c|x\ny\xff" {
		t.Errorf("payloads %q", got)
	}
	var list []map[string]any
	if err := json.Unmarshal([]byte(s.do("stream list -o json")), &list); err != nil || len(list) != 1 || list[0]["messages"] != 5.0 {
		t.Errorf("streams %v, %v", list, err)
	}
}

func exitsWith(t *testing.T, s *shell) {
	for line, want := range map[string]int{
		"stream get nothing":                    exitNotFound,
		"stream delete nothing":                 exitNotFound,
		"consume in nothing":                    exitNotFound,
		"stream get":                            exitUsage,
		"stream list --output yaml":             exitUsage,
		"stream list --nonsense":                exitUsage,
		"offset get in t 0":                     exitUsage,
		"topic create in t2 --option x":         exitUsage,
		"stream create in":                      exitFailed,
		"topic create in t2 --option no_such=1": exitFailed,
		"stream list --password wrong":          exitDenied,
		"stream list --address 127.0.0.1:1":     exitConnection,
		"stream list --context nowhere":         exitUsage,
	} {
		if _, errs, code := s.run("", strings.Fields(line)...); code != want {
			t.Errorf("%s: exit code %d (%s), want %d", line, code, strings.TrimSpace(errs), want)
		}
	}
}

func TestIdentifiers(t *testing.T) {
	for text, want := range map[string]wire.Identifier{
		"orders": wire.NamedID("orders"), "7": wire.NumericID(7), "name:7": wire.NamedID("7"), "id:7": wire.NumericID(7),
		"4294967296": wire.NamedID("4294967296"), "-1": wire.NamedID("-1"),
	} {
		got, err := identifier(text)
		if err != nil || got.Kind != want.Kind || got.ID != want.ID || string(got.Name) != string(want.Name) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "name:", "id:x", strings.Repeat("x", 256)} {
		if _, err := identifier(text); exitCode(err) != exitUsage {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestContextFileIsPrivate(t *testing.T) {
	s := &shell{t, map[string]string{}, t.TempDir()}
	s.do("context set a --password secret")
	s.do("context set b")
	s.do("context use b")
	info, err := os.Stat(filepath.Join(s.dir, "contexts.toml"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if out := s.do("context list -o json"); strings.Contains(out, "secret") || !strings.Contains(out, `"current": true`) {
		t.Errorf("contexts %s", out)
	}
	if _, _, code := s.run("", "context", "use", "c"); code != exitUsage {
		t.Errorf("exit code %d for an unknown context", code)
	}
	if out := s.do("context list -o json"); !strings.Contains(out, `"current": true`) {
		t.Error("an unknown context became current")
	}
}

func TestSizesAreReadable(t *testing.T) {
	for n, want := range map[bytesCount]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1 << 20: "1.0 MiB", 5 << 30: "5.0 GiB", 1<<64 - 1: "16.0 EiB",
	} {
		if got := n.String(); got != want {
			t.Errorf("%d: %s, want %s", uint64(n), got, want)
		}
	}
}
