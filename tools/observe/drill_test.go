package observe

import (
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var drills = flag.Bool("drills", false, "cause alerts; takes some minutes")

// shorten makes a day of patience seconds: how long something lasts, and the windows it is looked at in.
func shorten(rules string) string {
	for _, change := range []struct{ pattern, by string }{
		{`(?m)^(\s+for: )(30s|\d+m|\d+h)$`, "${1}2s"},
		{`\[(1m|5m|1h)\]`, "[10s]"},
		{`< 3600`, "< 20"},
	} {
		rules = regexp.MustCompile(change.pattern).ReplaceAllString(rules, change.by)
	}
	return rules
}

// drill is something that happens, and what is done about it.
type drill struct {
	what   string
	alerts []string
	cause  func(t *testing.T)
	cure   func(t *testing.T)
}

// outcome is a row of the table.
type outcome struct {
	alert, what    string
	fired, cleared time.Duration
}

// firing are the alerts that fire now.
func (p *prometheus) firing() (all []string) {
	var data struct {
		Alerts []struct {
			State  string
			Labels map[string]string
		}
	}
	if err := p.get("/api/v1/alerts", nil, &data); err != nil {
		p.t.Fatal(err)
	}
	for _, a := range data.Alerts {
		if name := a.Labels["alertname"]; a.State == "firing" && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// run causes what a drill is about, waits until its alerts fire, cures it and waits until nothing fires.
func (p *prometheus) run(t *testing.T, d drill) (rows []outcome) {
	t.Helper()
	// Of the other alerts some may fire all the time: this machine's own disk may be nearly full.
	over := func(now []string) bool {
		return !slices.ContainsFunc(d.alerts, func(name string) bool { return slices.Contains(now, name) })
	}
	if !soon(patience, func() bool { return over(p.firing()) }) {
		t.Fatalf("before %q: %q fire", d.what, p.firing())
	}
	began, fired := time.Now(), map[string]time.Duration{}
	d.cause(t)
	if !soon(patience, func() bool {
		for _, name := range p.firing() {
			if fired[name] == 0 {
				fired[name] = time.Since(began)
			}
		}
		return !slices.ContainsFunc(d.alerts, func(name string) bool { return fired[name] == 0 })
	}) {
		t.Errorf("%s: only %v fired, want %q", d.what, fired, d.alerts)
	}
	t.Logf("fired: %v", fired)
	began = time.Now()
	d.cure(t)
	cleared := map[string]time.Duration{}
	if !soon(patience, func() bool {
		now := p.firing()
		for name := range fired {
			if !slices.Contains(now, name) && cleared[name] == 0 {
				cleared[name] = time.Since(began)
			} else if slices.Contains(now, name) {
				delete(cleared, name)
			}
		}
		return over(now)
	}) {
		t.Errorf("after %q: %q still fire", d.what, p.firing())
	}
	for _, name := range d.alerts {
		rows = append(rows, outcome{name, d.what, fired[name], cleared[name]})
	}
	return rows
}

// exercise runs drills in order and logs the table.
func (p *prometheus) exercise(t *testing.T, all []drill) (rows []outcome) {
	t.Helper()
	for _, d := range all {
		t.Run(strings.ReplaceAll(d.what, " ", "-"), func(t *testing.T) { rows = append(rows, p.run(t, d)...) })
	}
	var table strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&table, "%-34s %-50s %8s %8s\n", r.alert, r.what, r.fired.Round(100*time.Millisecond), r.cleared.Round(100*time.Millisecond))
	}
	t.Logf("\n%-34s %-50s %8s %8s\n%s", "alert", "cause", "fired", "cleared", table.String())
	return rows
}

// TestDrills causes every alert there is but that of a slow disk. Each fires, and clears after what caused it is over.
func TestDrills(t *testing.T) {
	if !*drills {
		t.Skip("takes some minutes: -args -drills")
	}
	caused := map[string]bool{}
	t.Run("cluster", func(t *testing.T) { note(caused, drillCluster(t)) })
	t.Run("server", func(t *testing.T) { note(caused, drillServer(t)) })
	if t.Failed() || strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		return // not all of them were to run
	}
	// A disk that is slow is not to be had here: this one has its unit test alone.
	caused["WhippetSlowDisk"] = true
	for _, r := range rules(t, "alerts.yml") {
		if !caused[r.Alert] {
			t.Errorf("no drill causes %s", r.Alert)
		}
	}
}

func note(caused map[string]bool, rows []outcome) {
	for _, r := range rows {
		caused[r.alert] = r.fired > 0 && r.cleared > 0
	}
}
