package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/tools/client"
	"github.com/whippet-mq/whippet/tools/floor"
)

// server is the floor program: it is enough of a broker to be measured.
func server(t *testing.T) client.Options {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go floor.Serve(l, t.TempDir(), floor.SyncNone)
	return client.Options{Address: l.Addr().String(), Username: "u", Password: "p"}
}

func TestCountIsSentAndRead(t *testing.T) {
	report, err := Run(context.Background(), Workload{
		Connect: server(t), Producers: 3, Consumers: 2, Partitions: 2, Batch: 10, Size: 1, MaxSize: 5000, Count: 3000,
	})
	if err != nil {
		t.Fatal(err)
	}
	p, c := report.Produced, report.Consumed
	if p.Messages != 3000 || p.Requests != 300 || c.Messages != 3000 || p.Errors+c.Errors != 0 {
		t.Errorf("sent %d in %d requests, read %d, errors %d %d", p.Messages, p.Requests, c.Messages, p.Errors, c.Errors)
	}
	if p.Bytes != c.Bytes || p.Latency.Count != p.Requests || c.Transit.Count != c.Messages {
		t.Errorf("bytes %d %d, latencies %d, transits %d", p.Bytes, c.Bytes, p.Latency.Count, c.Transit.Count)
	}
	var text, picture, encoded bytes.Buffer
	if err := errors.Join(report.WriteText(&text), report.WriteSVG(&picture), report.WriteJSON(&encoded)); err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(encoded.Bytes(), &back); err != nil || back.Produced.Messages != 3000 {
		t.Errorf("JSON: %v, %d messages", err, back.Produced.Messages)
	}
	for d := xml.NewDecoder(&picture); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("picture: %v", err)
		}
	}
}

func TestRateIsKept(t *testing.T) {
	report, err := Run(context.Background(), Workload{
		Connect: server(t), Producers: 2, Batch: 10, Size: 10, Rate: 2000, Count: 2000,
	})
	if err != nil {
		t.Fatal(err)
	}
	// The last of 100 sends is due after 990 ms. A machine that is busy then makes it later.
	if n, took := report.Produced.Messages, report.Took; n != 2000 || took < 950*time.Millisecond || took > 1800*time.Millisecond {
		t.Errorf("%d messages in %v, want 2000 in a second", n, took)
	}
}

// TestStallIsCharged is the point of correcting for coordinated omission: one answer of a second in
// a closed loop that otherwise takes a millisecond hides a thousand slow requests.
func TestStallIsCharged(t *testing.T) {
	h := newHistogram()
	h.RecordValues(int64(time.Millisecond), 1000)
	h.RecordValue(int64(time.Second))
	if p := h.ValueAtQuantile(99); p > int64(2*time.Millisecond) {
		t.Fatalf("raw p99 %v", time.Duration(p))
	}
	c := corrected(h, time.Millisecond)
	if n := c.TotalCount(); n < 1990 || n > 2010 {
		t.Errorf("%d latencies, want about 2000", n)
	}
	if p := time.Duration(c.ValueAtQuantile(75)); p < 400*time.Millisecond || p > 600*time.Millisecond {
		t.Errorf("p75 %v, want about 500 ms", p)
	}
}

func TestWorkloadIsChecked(t *testing.T) {
	for name, w := range map[string]Workload{
		"nobody":              {Duration: 1},
		"no end":              {Producers: 1},
		"two ends":            {Producers: 1, Duration: 1, Count: 1},
		"readers by count":    {Consumers: 1, Count: 1},
		"backward sizes":      {Producers: 1, Duration: 1, Size: 2, MaxSize: 1},
		"batch beyond frames": {Producers: 1, Duration: 1, Batch: 1000, Size: 1 << 20},
		"groups of none":      {Producers: 1, Duration: 1, Groups: 1},
	} {
		if err := w.check(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
