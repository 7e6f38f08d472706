package observe

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/whippet-mq/whippet/tools/local"
)

const deployed = "../../deploy/prometheus"

// prometheus is a running Prometheus with the deployed configuration.
type prometheus struct {
	t       *testing.T
	address string
	dir     string
}

type object = map[string]any

// tool is the path of a program of Prometheus, or the end of the test.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not on this machine: apt-get install prometheus", name)
	}
	return path
}

// watch starts a Prometheus that scrapes every second. change may alter the text of a rule file.
func watch(t *testing.T, change func(rules string) string) *prometheus {
	t.Helper()
	program := tool(t, "prometheus")
	p := &prometheus{t: t, dir: t.TempDir(), address: freeAddress(t)}
	p.configure(change)
	log, err := os.Create(filepath.Join(p.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--config.file="+filepath.Join(p.dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(p.dir, "data"),
		"--web.listen-address="+p.address, "--log.level=warn", "--query.lookback-delta=10s")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("prometheus: %s", text[max(0, len(text)-2000):])
		}
	})
	p.await("prometheus is ready", func() bool {
		r, err := http.Get("http://" + p.address + "/-/ready")
		if err != nil {
			return false
		}
		_ = r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
	return p
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// configure writes the deployed configuration with targets from files in place of names in a network.
func (p *prometheus) configure(change func(string) string) {
	p.t.Helper()
	var config object
	if err := yaml.Unmarshal(p.read("prometheus.yml"), &config); err != nil {
		p.t.Fatal(err)
	}
	config["global"] = object{"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
	for _, job := range config["scrape_configs"].([]any) {
		job := job.(object)
		delete(job, "dns_sd_configs")
		job["file_sd_configs"] = []object{{"files": []string{filepath.Join(p.dir, job["job_name"].(string)+".json")}, "refresh_interval": "1s"}}
	}
	text, err := yaml.Marshal(config)
	if err != nil {
		p.t.Fatal(err)
	}
	p.write("prometheus.yml", text)
	for _, name := range []string{"recording.yml", "alerts.yml"} {
		p.write(name, []byte(change(string(p.read(name)))))
	}
}

func (p *prometheus) read(name string) []byte {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(deployed, name))
	if err != nil {
		p.t.Fatal(err)
	}
	return text
}

func (p *prometheus) write(name string, text []byte) {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		p.t.Fatal(err)
	}
}

// scrape makes the processes of a cluster, and more addresses for a job, the targets.
func (p *prometheus) scrape(c *local.Cluster, more map[string][]string) {
	p.t.Helper()
	jobs := map[string][]string{"front-door": {}, "metadata-replica": {}, "partition-replica": {}}
	for _, process := range c.Status() {
		if process.Ops == "" {
			p.t.Fatalf("%s %d has no ops port", process.Role, process.ID)
		}
		job := map[local.Role]string{local.FrontDoor: "front-door", local.Metadata: "metadata-replica", local.Partition: "partition-replica"}[process.Role]
		jobs[job] = append(jobs[job], process.Ops)
	}
	for job, addresses := range jobs {
		text, err := json.Marshal([]object{{"targets": append(addresses, more[job]...)}})
		if err != nil {
			p.t.Fatal(err)
		}
		p.write(job+".json", text)
	}
}

// sample is one series of an answer, with its last value or all of them.
type sample struct {
	Metric map[string]string `json:"metric"`
	Value  [2]any            `json:"value"`
	Values [][2]any          `json:"values"`
}

// get asks the HTTP interface and decodes the data of the answer.
func (p *prometheus) get(path string, q url.Values, data any) error {
	r, err := http.Get("http://" + p.address + path + "?" + q.Encode())
	if err != nil {
		return err
	}
	defer func() { _ = r.Body.Close() }()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
		return err
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", q, answer.Error)
	}
	return nil
}

// query returns the series of an expression now.
func (p *prometheus) query(expr string) ([]sample, error) {
	var data struct{ Result []sample }
	err := p.get("/api/v1/query", url.Values{"query": {expr}}, &data)
	return data.Result, err
}

// history returns the series of an expression over the last d.
func (p *prometheus) history(expr string, d time.Duration) ([]sample, error) {
	var data struct{ Result []sample }
	now := time.Now()
	err := p.get("/api/v1/query_range", url.Values{
		"query": {expr}, "step": {"3"}, "start": {strconv.FormatInt(now.Add(-d).Unix(), 10)}, "end": {strconv.FormatInt(now.Unix(), 10)},
	}, &data)
	return data.Result, err
}

// series are the labels of everything that a metric was seen with.
func (p *prometheus) series(metric string) ([]map[string]string, error) {
	var data []map[string]string
	err := p.get("/api/v1/series", url.Values{"match[]": {metric}}, &data)
	return data, err
}

const (
	patience  = 2 * time.Minute
	lookAgain = 200 * time.Millisecond
)

// await looks until done, for as long as a busy machine may need.
func (p *prometheus) await(what string, done func() bool) {
	p.t.Helper()
	if !soon(patience, done) {
		p.t.Fatalf("not seen: %s", what)
	}
}

// soon looks until done, at most for limit.
func soon(limit time.Duration, done func() bool) bool {
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for end := time.Now().Add(limit); !done(); {
		if time.Now().After(end) {
			return false
		}
		<-again.C
	}
	return true
}
