package service

import (
	"strings"
	"testing"
)

func TestMetadataRoster(t *testing.T) {
	c := &Config{}
	c.Metadata.Roster = "0=meta-0:9090, 1=10.0.0.2:9190,7=[::1]:9290"
	roster, err := c.MetadataRoster()
	if err != nil {
		t.Fatal(err)
	}
	want := []Peer{{0, "meta-0:9090", "meta-0:9091"}, {1, "10.0.0.2:9190", "10.0.0.2:9191"}, {7, "[::1]:9290", "[::1]:9291"}}
	for i, p := range want {
		if roster[i] != p {
			t.Errorf("entry %d: %+v, want %+v", i, roster[i], p)
		}
	}
	for text, problem := range map[string]string{
		"":                  "0 metadata replicas",
		"0=a:1,1=b:1":       "2 metadata replicas",
		"0=a:1,0=b:1,2=c:1": "twice",
		"0=a:1,1=a:1,2=c:1": "twice",
		"x=a:1":             "id of 0..254",
		"255=a:1":           "id of 0..254",
		"0:a:1":             "id of 0..254",
		"0=a":               "id=host:port",
		"0=:9090":           "id=host:port",
		"0=a:0":             "a port of",
		"0=a:65535":         "a port of",
		"0=a:http":          "a port of",
	} {
		c.Metadata.Roster = text
		if _, err := c.MetadataRoster(); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%q: %v, want %q", text, err, problem)
		}
	}
}
