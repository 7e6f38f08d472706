package compare

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/tools/bench"
)

func TestMedian(t *testing.T) {
	rate := func(f figure) float64 { return f.rate }
	for want, rates := range map[float64][]float64{3: {3}, 2.5: {4, 2, 3, 1}, 5: {9, 5, 1}} {
		var figures []figure
		for _, r := range rates {
			figures = append(figures, figure{rate: r})
		}
		if got := median(figures, rate); got != want {
			t.Errorf("median of %v is %v, want %v", rates, got, want)
		}
	}
}

func TestFigureDividesByWhatWasMeasured(t *testing.T) {
	side := &bench.Side{
		Messages: 2000, Bytes: 2e9, Requests: 500, MBPerSecond: 1000, RequestsPerSecond: 250,
		Latency: bench.Latency{Quantiles: map[string]float64{"p50": 1000, "p99": 2000}},
	}
	report := &bench.Report{Took: 2 * time.Second, Produced: side}
	used := usage{cpu: time.Second, mallocs: 4000}
	f := (&job{bytes: true}).figure(report, used)
	if f.rate != 1000 || f.p99 != 2 || f.cpu != 0.5 || f.perUnit != 500 || f.allocated != 2 {
		t.Errorf("by bytes: %+v", f)
	}
	if f = (&job{}).figure(report, used); f.rate != 250 || f.perUnit != 2000 {
		t.Errorf("by requests: %+v", f)
	}
	if f = (&job{}).figure(report, usage{}); f.allocated >= 0 {
		t.Errorf("allocations known without a counter: %+v", f)
	}
}

func TestCounter(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("# HELP x_total of x\nx_total_more 9\nx_total 1.5e+06\n"))
	}))
	defer s.Close()
	if v, err := counter(s.URL, "x_total"); err != nil || v != 1.5e6 {
		t.Errorf("%v, %v", v, err)
	}
	if _, err := counter(s.URL, "y_total"); err == nil {
		t.Error("a metric that is not there was found")
	}
}

func TestOwnUsageIsReadable(t *testing.T) {
	for deadline := time.Now().Add(5 * time.Second); ; {
		used, err := cpuTime(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if used > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("this busy loop used no processor time")
		}
	}
	if n, err := residentMemory(os.Getpid()); err != nil || n < 1<<20 {
		t.Errorf("resident memory %d, %v", n, err)
	}
}

func TestTableAndPicture(t *testing.T) {
	rows := []Row{{Job: "job", Unit: "MB/s", Floor: 10, Server: 5, Ratio: 0.5, Asked: 0.5, Allocations: -1}}
	var text, picture bytes.Buffer
	if err := WriteText(&text, rows); err != nil || !strings.Contains(text.String(), "0.50") || strings.Contains(text.String(), "-1") {
		t.Errorf("%v\n%s", err, text.String())
	}
	if err := WriteSVG(&picture, rows); err != nil || !strings.Contains(picture.String(), "0.50") {
		t.Errorf("%v\n%s", err, picture.String())
	}
	if name := fileName("8 producers x 1000 B, fsync / each"); name != "8-producers-x-1000-b-fsync-each" {
		t.Errorf("file name %q", name)
	}
}
