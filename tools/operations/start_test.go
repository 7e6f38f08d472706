package operations

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/whippet-mq/whippet/tools/process"
)

// The exit codes of the page, and messages that say what to mend.
func TestExitCodes(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct {
		env   []string
		args  []string
		code  int
		words []string
	}{
		{nil, []string{"--version"}, 0, []string{"whippet-server"}},
		{nil, []string{"--help"}, 0, []string{"--replica-id", "--fresh", "--with-default-root-credentials", "--config"}},
		{nil, []string{"--nonsense"}, 2, []string{"nonsense"}},
		{[]string{"IGGY_TCP_ADDRESS=here"}, nil, 2, []string{"tcp.address", `"here"`, "IGGY_TCP_ADDRESS", "host:port"}},
		{[]string{"IGGY_SYSTEM_ENCRYPTION_KEY=AAAA"}, nil, 2, []string{"system.encryption.key"}},
		{[]string{"IGGY_ROOT_USERNAME=admin"}, nil, 2, []string{"together"}},
		{[]string{"IGGY_TCP_ADDRESS=" + taken.Addr().String()}, nil, 1, []string{taken.Addr().String()}},
		{[]string{"WHIPPET_OPS_ADDRESS=" + taken.Addr().String()}, nil, 1, []string{"ops.address", taken.Addr().String()}},
	} {
		code, out := run(t, c.env, c.args...)
		if code != c.code {
			t.Errorf("%v %v ended with %d, want %d:\n%s", c.env, c.args, code, c.code, out)
		}
		contains(t, out, c.words...)
	}
}

// Several servers on one machine need no ops address of their own.
func TestDefaultOpsPortMoves(t *testing.T) {
	none := map[string]string{"WHIPPET_OPS_ADDRESS": ""}
	first, second := start(t, t.TempDir(), none), start(t, t.TempDir(), none)
	for _, s := range []server{first, second} {
		if code, body := s.ops("/readyz"); code != 200 {
			t.Errorf("/readyz is %d %s", code, body)
		}
	}
	log, err := os.ReadFile(second.Log())
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(log), "port taken, using a free one", "server running")
}

// A data directory has one owner.
func TestDataDirectoryIsLocked(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	code, out := run(t, []string{"IGGY_SYSTEM_PATH=" + s.Data()})
	if code != 1 {
		t.Errorf("the second server ended with %d", code)
	}
	contains(t, out, "in use", s.Data())
	if err := s.connect("iggy", "iggy").Ping(); err != nil {
		t.Errorf("the first server: %v", err)
	}
	if _, err := os.Stat(filepath.Join(s.Data(), "runtime", "current_config.toml")); err != nil {
		t.Errorf("the second server removed the first one's runtime file: %v", err)
	}
}

func TestFresh(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, nil)
	fill(t, s.connect("iggy", "iggy"), 3)
	if err := s.Restart(false); err != nil {
		t.Fatal(err)
	}
	expect(t, s.connect("iggy", "iggy"), 3)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	fresh := filepath.Join(dir, "server")
	if err := os.WriteFile(fresh, []byte("#!/bin/sh\nexec "+serverBinary+" --fresh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	again := server{process.New(fresh, dir, nil), t}
	if err := again.Start(); err != nil {
		t.Fatal(err)
	}
	defer again.Stop()
	if streams, err := again.connect("iggy", "iggy").Streams(); err != nil || len(streams) != 0 {
		t.Errorf("%d streams, %v", len(streams), err)
	}
}

// Clients that are connected, and one in the middle of a frame, do not hold up the stop.
func TestStopWithClients(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	fill(t, s.connect("iggy", "iggy"), 1)
	half, err := net.Dial("tcp", s.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer half.Close()
	if _, err := half.Write(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	log, _ := os.ReadFile(s.Log())
	if !strings.Contains(string(log), "stopped") {
		t.Errorf("not drained:\n%s", log)
	}
}
