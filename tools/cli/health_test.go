package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestHealthAsksTheOpsPort shows the exit codes that health checks of containers rely on.
func TestHealthAsksTheOpsPort(t *testing.T) {
	failing := ""
	ops := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == failing {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, "failing start: starting\n")
		}
	}))
	defer ops.Close()
	address := strings.TrimPrefix(ops.URL, "http://")
	_, port, _ := strings.Cut(address, ":")
	for _, c := range []struct {
		address, failing, says string
		code                   int
	}{
		{address, "", "", exitDone},
		{":" + port, "", "", exitDone},
		{"0.0.0.0:" + port, "", "", exitDone},
		{address, "/readyz", "/readyz: 503 Service Unavailable: failing start: starting", exitFailed},
		{address, "/healthz", "/healthz: 503 Service Unavailable", exitFailed},
		{"127.0.0.1:1", "", "refused", exitConnection},
		{"127.0.0.1", "", "want host:port", exitUsage},
	} {
		failing = c.failing
		s := &shell{t, map[string]string{}, t.TempDir()}
		_, errs, code := s.run("", "health", "--ops", c.address)
		if code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%s with %q failing: exit code %d, %q", c.address, c.failing, code, errs)
		}
	}
}

// TestHealthAsksAPage is the same for programs that are not ours.
func TestHealthAsksAPage(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path != "/well" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer page.Close()
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"--url", page.URL + "/well"}, exitDone},
		{[]string{"--url", page.URL + "/ill"}, exitFailed},
		{[]string{"--url", "http://127.0.0.1:1/well"}, exitConnection},
		{[]string{"--url", page.URL, "--ops", "127.0.0.1:1"}, exitUsage},
	} {
		s := &shell{t, map[string]string{}, t.TempDir()}
		if _, errs, code := s.run("", append([]string{"health"}, c.args...)...); code != c.code {
			t.Errorf("%v: exit code %d, %q", c.args, code, errs)
		}
	}
}

// TestHealthSettled: a replica that is behind is told from one that is not, also where nobody says.
func TestHealthSettled(t *testing.T) {
	page := ""
	ops := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/metrics" {
			_, _ = io.WriteString(w, page)
		}
	}))
	defer ops.Close()
	address := strings.TrimPrefix(ops.URL, "http://")
	for _, c := range []struct {
		page string
		code int
	}{
		{"# HELP x\nwhippet_partitions_unsettled 0\n", exitDone},
		{"whippet_partitions_unsettled 3\n", exitFailed},
		{"whippet_partitions_led 0\n", exitFailed},
	} {
		page = c.page
		s := &shell{t, map[string]string{}, t.TempDir()}
		if _, errs, code := s.run("", "health", "--settled", "--ops", address); code != c.code {
			t.Errorf("%q: exit code %d, %q", c.page, code, errs)
		}
	}
	s := &shell{t, map[string]string{}, t.TempDir()}
	if _, _, code := s.run("", "health", "--settled"); code != exitUsage {
		t.Errorf("--settled alone: exit code %d", code)
	}
}
