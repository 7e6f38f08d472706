package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/tools/bench/verify"
	"github.com/whippet-mq/whippet/tools/local"
)

// TestRollingRestart stops and starts every process in turn, with SIGTERM and under load: no client sees an error.
// Connections to a front-door that is stopped end, and nothing else.
func TestRollingRestart(t *testing.T) {
	both(t, func(t *testing.T, p local.Plan) {
		c := start(t, p)
		l := load(t, c, verify.Options{})
		var done []restart
		for range *rounds {
			for _, m := range c.Members {
				l.pause(500)
				r := restart{member: m, door: c.Process(m).TCP, from: time.Now()}
				if err := c.Stop(m); err != nil {
					t.Fatal(err)
				}
				again(t, c, m)
				r.to = time.Now()
				done = append(done, r)
			}
		}
		l.check(t)
		ended := 0
		for _, d := range l.recorder.Disturbances() {
			if d.Broken && expected(done, &d) {
				ended++
				continue
			}
			t.Errorf("%v, %s", &d, during(done, d.At))
		}
		t.Logf("%d restarts, %d requests met the end of their connection", len(done), ended)
	})
}

// restart is one process that was stopped and started.
type restart struct {
	member   local.Member
	door     string // where clients connected to it, "" for one without a front-door
	from, to time.Time
}

// expected reports whether a connection ended because its front-door was stopped.
func expected(all []restart, d *verify.Disturbance) bool {
	for _, r := range all {
		if r.door != "" && r.door == d.Address && d.At.After(r.from) && d.Since.Before(r.to) { // many a client notices late
			return true
		}
	}
	return false
}

// during tells what was being restarted.
func during(all []restart, at time.Time) string {
	for _, r := range all {
		if at.After(r.from) && at.Before(r.to.Add(time.Second)) {
			return fmt.Sprintf("%v into the restart of %s %d, door %q, which took %v", at.Sub(r.from), r.member.Role, r.member.ID, r.door, r.to.Sub(r.from))
		}
	}
	return "outside of any restart"
}
