package conformance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"
)

// Options say what to run against what.
type Options struct {
	Address  string         // a running server; scenarios that need their own or a restart are skipped
	HTTP     string         // URL of its HTTP interface, for the HTTP scenarios
	Binary   string         // or a server program to start as often as needed,
	Form     string         // or clusters of one of Forms; then Binary is the directory of all programs
	Node     int            // of a cluster: the front-door or node to speak to
	Filter   *regexp.Regexp // names to run; nil runs all
	User     string         // an administrator of the running server
	Password string
	Patience int    // multiplies the time allowed for answers
	Carrier  string // transport to play over, one of Carriers; others than tcp need Binary
	Lanes    int    // servers driven at the same time, with Binary
	// Report, when set, is told about each scenario as it ends; calls do not overlap.
	Report func(Result)
}

// Verdict says how a scenario ended.
type Verdict string

const (
	Passed  Verdict = "passed"
	Failed  Verdict = "failed"
	Skipped Verdict = "skipped" // not possible against this server
	Listed  Verdict = "listed"  // known, not judged: a quirk of the reference, or for clusters
)

// Result is the outcome of one scenario.
type Result struct {
	Scenario *Scenario
	Verdict  Verdict
	Err      error // why it failed or was skipped
	Took     time.Duration
}

var errNeedsBinary = errors.New("needs a server of its own; give --server")

var errPushes = errors.New("nothing is pushed over QUIC, an eviction waits for the next request")

// Run plays the recorded scenarios. Its error is about the run, not about a scenario.
func Run(o Options) ([]Result, error) {
	all, err := Load()
	if err != nil {
		return nil, err
	}
	r := &runner{Options: o}
	var shared, own []*Scenario
	for _, s := range all {
		switch {
		case o.Filter != nil && !o.Filter.MatchString(s.Name):
		case s.Quirk || s.Cluster && o.Form != "all-role" || o.Form == "services" && s.Name == firstLogin:
			r.add(Result{Scenario: s, Verdict: Listed})
		case o.Carrier == "quic" && s.pushes():
			r.add(Result{Scenario: s, Verdict: Skipped, Err: errPushes})
		case s.Fresh && o.Binary == "":
			r.add(Result{Scenario: s, Verdict: Skipped, Err: errNeedsBinary})
		case s.Fresh:
			own = append(own, s)
		default:
			shared = append(shared, s)
		}
	}
	if o.Binary == "" {
		r.playShared(fixed(o.Address), shared)
		return r.results, nil
	}
	dir, err := os.MkdirTemp("", "whippet-conformance-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	return r.results, r.playAll(dir, shared, own)
}

// firstLogin expects the first position of the metadata log. In a cluster of services nodes registered
// before anybody could log in.
const firstLogin = "login-first"

type runner struct {
	Options
	mu      sync.Mutex
	results []Result
}

// playAll spreads the scenarios over lanes: one lane's worth of servers at a time each.
func (r *runner) playAll(dir string, shared, own []*Scenario) error {
	lanes := max(1, r.Lanes)
	tasks := make(chan func() error, len(own)+lanes)
	for _, s := range own {
		tasks <- func() error { return r.playOwn(filepath.Join(dir, s.Name), s) }
	}
	for i := range lanes {
		part := shared[len(shared)*i/lanes : len(shared)*(i+1)/lanes]
		tasks <- func() error {
			if len(part) == 0 {
				return nil
			}
			return r.playPart(filepath.Join(dir, fmt.Sprintf("shared-%d", i)), part)
		}
	}
	close(tasks)
	var wg sync.WaitGroup
	errs := make([]error, lanes+1)
	for i := range errs {
		wg.Go(func() {
			for task := range tasks {
				errs[i] = errors.Join(errs[i], task())
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// playPart plays scenarios on one server. When it dies the scenario at hand has failed, and the rest
// goes on with a new one.
func (r *runner) playPart(dir string, part []*Scenario) error {
	for life := 0; len(part) > 0; life++ {
		server, err := r.instance(filepath.Join(dir, fmt.Sprint(life)), nil)
		if err != nil {
			return err
		}
		if err := server.Start(); err != nil {
			return errors.Join(err, server.Kill())
		}
		for len(part) > 0 && server.Alive() {
			r.playShared(server, part[:1])
			part = part[1:]
		}
		if server.Alive() {
			return server.Stop()
		}
		r.died(server.LastWords())
		_ = server.Kill() // what is left of a cluster
	}
	return nil
}

// died adds a dead server's last words to the failure it caused.
func (r *runner) died(words string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.results) - 1; i >= 0; i-- {
		if last := &r.results[i]; last.Verdict == Failed {
			last.Err = fmt.Errorf("%w; THE SERVER DIED: %s", last.Err, words)
			return
		}
	}
}

// playOwn gives s a server nobody used before.
func (r *runner) playOwn(dir string, s *Scenario) error {
	server, err := r.instance(dir, s.Env)
	if err != nil {
		return err
	}
	defer func() {
		_ = server.Kill()
		_ = os.RemoveAll(dir) // clusters fill a disk soon; what counts is in the verdict
	}()
	if err := server.Start(); err != nil {
		return err
	}
	r.play(server, s)
	return nil
}

// playShared plays scenarios on one server, emptied before each.
func (r *runner) playShared(server Server, scenarios []*Scenario) {
	for _, s := range scenarios {
		if err := Clean(server.Address(), r.user(), r.password()); err != nil {
			r.add(Result{Scenario: s, Verdict: Failed, Err: fmt.Errorf("empty the server: %w", err)})
			continue
		}
		r.play(server, s)
	}
}

func (r *runner) play(server Server, s *Scenario) {
	started := time.Now()
	p := Player{Server: server, Patience: r.Patience, Carrier: r.Carrier, Roster: r.roster()}
	result := Result{Scenario: s, Verdict: Passed, Err: p.Play(s), Took: time.Since(started)}
	switch {
	case errors.Is(result.Err, ErrFixed):
		result.Verdict = Skipped
	case result.Err != nil:
		result.Verdict = Failed
	}
	r.add(result)
}

func (r *runner) add(result Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.results = append(r.results, result)
	if r.Report != nil {
		r.Report(result)
	}
}

// roster is how many nodes show each other.
func (r *runner) roster() int {
	if r.Form == "all-role" {
		return nodes
	}
	return 0
}

func (r *runner) user() string {
	if r.User == "" {
		return "iggy"
	}
	return r.User
}

func (r *runner) password() string {
	if r.Password == "" {
		return "iggy"
	}
	return r.Password
}

// fixed is a server of the outside world.
type fixed string

func (f fixed) Address() string    { return string(f) }
func (f fixed) Restart(bool) error { return ErrFixed }
