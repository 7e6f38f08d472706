package metadatareplica

import (
	"time"

	"github.com/whippet-mq/whippet/libs/metadata/feed"
)

// Feed is where processes without a replica follow this one, nil when Config.Feed is not set.
func (r *Replica) Feed() *feed.Source { return r.feed }

// feedOut lets the followers have what was applied, on a goroutine of their own: there may be many, and
// the loop is for the members.
func (r *Replica) feedOut() {
	switch {
	case r.feed == nil:
	case r.config.Engine.Stepped:
		r.feed.Publish()
	default:
		select {
		case r.fed <- struct{}{}:
		default:
		}
	}
}

// knows reports whether this replica knows what is committed, as Config.Current says or, without it, because
// it has applied what they told it and hears enough of them.
func (r *Replica) knows() bool {
	if r.config.Current != nil {
		return r.config.Current()
	}
	return r.group.Knows(r.engine.Tick(), r.config.Engine.Echoes)
}

// Fresh reports whether this replica knew within feed.FreshFor what is committed: who authorizes from its view
// in the same process stops when it did not.
func (r *Replica) Fresh() bool {
	return r.knows() || time.Since(r.opened)-time.Duration(r.known.Load()) < feed.FreshFor
}

// feeding serves the followers.
func (r *Replica) feeding() {
	defer r.gone.Done()
	beat := time.NewTicker(feed.BeaconEvery)
	defer beat.Stop()
	for {
		select {
		case <-r.fed:
			r.feed.Publish()
		case now := <-beat.C:
			if r.knows() {
				r.known.Store(int64(time.Since(r.opened)))
			}
			if r.feed != nil {
				r.feed.Beat(now)
			}
		case <-r.stop:
			return
		}
	}
}
