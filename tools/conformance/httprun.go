package conformance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// RunHTTP plays the recorded HTTP scenarios: against o.HTTP, a server whose settings are the default
// ones, or against servers started from o.Binary, one for each profile.
func RunHTTP(o Options) ([]Result, error) {
	all, err := LoadHTTP()
	if err != nil {
		return nil, err
	}
	r := &runner{Options: o}
	byProfile := make(map[string][]*HTTPScenario)
	for _, s := range all {
		if o.Filter == nil || o.Filter.MatchString(s.result().Name) {
			byProfile[s.Profile] = append(byProfile[s.Profile], s)
		}
	}
	if o.HTTP != "" {
		for profile, list := range byProfile {
			for _, s := range list {
				if profile == "default" {
					r.playHTTP(o.HTTP, s)
				} else {
					r.add(Result{Scenario: s.result(), Verdict: Skipped, Err: errNeedsBinary})
				}
			}
		}
		return r.results, nil
	}
	dir, err := os.MkdirTemp("", "whippet-conformance-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // left-overs in the temporary directory do no harm
	for profile, list := range byProfile {
		if err := r.playProfile(filepath.Join(dir, profile), profile, list); err != nil {
			return r.results, err
		}
	}
	return r.results, nil
}

// playProfile plays scenarios on a server of their own.
func (r *runner) playProfile(dir, profile string, list []*HTTPScenario) error {
	server, err := r.instance(dir, profiles[profile])
	if err != nil {
		return err
	}
	defer func() {
		_ = server.Kill()
		_ = os.RemoveAll(dir) // before the next profile needs the room
	}()
	if err := server.Start(); err != nil {
		return err
	}
	for _, s := range list {
		r.playHTTP("http://"+server.Bound("http"), s)
	}
	return server.Stop()
}

// result describes the scenario in a report.
func (s *HTTPScenario) result() *Scenario {
	return &Scenario{Name: "http/" + s.Name, Area: "http", About: s.About}
}

func (r *runner) playHTTP(base string, s *HTTPScenario) {
	started := time.Now()
	result := Result{Scenario: s.result(), Verdict: Passed}
	p := newHTTPPlayer(base, r.Patience)
	p.roster = r.roster()
	if result.Err = p.empty(r.user(), r.password()); result.Err == nil {
		result.Err = p.play(s)
	}
	if result.Took = time.Since(started); result.Err != nil {
		result.Verdict = Failed
	}
	r.add(result)
}

// empty deletes every stream, every user but root and root's tokens.
func (p *httpPlayer) empty(user, password string) error {
	login, err := json.Marshal(map[string]string{"username": user, "password": password})
	if err != nil {
		return err
	}
	got, err := p.exchange(&httpRequest{Method: http.MethodPost, Path: "/users/login", JSON: login}, 0)
	if err != nil {
		return err
	}
	if err := p.bind(map[string]string{"admin": "$.access_token.token"}, got.body); err != nil {
		return fmt.Errorf("login as %s: %w", user, err)
	}
	for _, list := range []struct{ path, key string }{{"/streams", "id"}, {"/users", "id"}, {"/personal-access-tokens", "name"}} {
		if err := p.emptyList(list.path, list.key); err != nil {
			return fmt.Errorf("empty %s: %w", list.path, err)
		}
	}
	p.vars = make(map[string]any)
	return nil
}

func (p *httpPlayer) emptyList(path, key string) error {
	auth := map[string]string{"authorization": "Bearer ${admin}"}
	got, err := p.exchange(&httpRequest{Method: http.MethodGet, Path: path, Headers: auth}, 0)
	if err != nil {
		return err
	}
	var items []map[string]any
	if err := json.Unmarshal(got.body, &items); err != nil {
		return err
	}
	for _, item := range items {
		if path == "/users" && fmt.Sprint(item[key]) == "0" {
			continue
		}
		one := &httpRequest{Method: http.MethodDelete, Path: fmt.Sprint(path, "/", item[key]), Headers: auth}
		if got, err = p.exchange(one, 0); err != nil {
			return err
		}
		if got.status != http.StatusNoContent {
			return fmt.Errorf("delete %v: status %d", item[key], got.status)
		}
	}
	return nil
}
