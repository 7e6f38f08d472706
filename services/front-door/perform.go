package frontdoor

import (
	"time"
)

// perform does what the session asked for and lets it go on. It is the only place where a request
// waits.
func (c *conn) perform(act action) action {
	s := c.session
	switch act {
	case actRoute:
		s.service.Serve(s.call)
		<-s.call.Done()
	case actPause:
		c.pause(s.delay)
	case actHold:
		if !c.core.deps.Follower.Wait(s.call.Op, c.core.cfg.HoldFor) {
			c.core.metrics.lateFollower.Inc()
		}
	case actPassword:
		c.password(&s.job)
	case actFacts:
		s.facts = c.core.facts.get(s.groups, s.facts[:0])
	case actStats:
		c.core.host.read(&s.host)
	case actSnapshot:
		s.archive, s.archiveErr = c.core.snapshot(s.archiveSpec)
	}
	return s.resume(time.Now())
}

// pause waits d, or until the server stops.
func (c *conn) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.server.done:
	}
}

// password runs one computation: at once when the password is a known good one, else in the pool.
func (c *conn) password(j *passwordJob) {
	p := c.core.passwords
	j.ok, j.busy, j.hash = false, false, ""
	if j.phc == "" || !p.known(j.user, j.password, j.phc) {
		if j.done == nil {
			j.done = make(chan struct{}, 1)
		}
		if !p.submit(j) {
			j.busy = true
			return
		}
		<-j.done
		return
	}
	j.ok = true
	clear(j.password)
}

// leave logs the session of a lost connection out, unless the server itself is stopping: then the
// client may come back to its session.
func (c *conn) leave() {
	b := c.session.binding.Load()
	if b == nil || b.superseded.Load() || c.core.stopping.Load() {
		return
	}
	c.server.logout(b)
	c.core.clients.unbind(c.session, b)
}
