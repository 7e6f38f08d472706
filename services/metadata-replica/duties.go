package metadatareplica

import (
	"encoding/binary"
	"time"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/loop"
	"github.com/whippet-mq/whippet/libs/metadata"
	"github.com/whippet-mq/whippet/libs/wire"
)

const (
	reconcileEvery = time.Second
	// revokeEvery is how often pending revocations are looked at while there are any.
	revokeEvery = 10 * time.Millisecond
	// askLimit bounds the questions of one join, or of one hand-off, for polled but uncommitted data;
	// silence means in flight. A refused question is asked again after askPause.
	askLimit = 500 * time.Millisecond
	askPause = 5 * time.Millisecond
	// keepEvery is how often changed metadata goes into a checkpoint. A checkpoint stands on disk twice,
	// the log behind it once: damage to a log file can cost no more than what is younger than this.
	keepEvery = 10 * time.Second
	// sweepEvery is how often sessions nobody claims and nodes that are gone are looked for.
	sweepEvery = 5 * time.Second
	// tokensPerPass bounds one pass of the token cleaner.
	tokensPerPass = 256
	noRequest     = ^uint64(0)
)

// duties are the tasks of the metadata primary, each made idempotent by the op it proposes.
func (r *Replica) duties() {
	defer r.gone.Done()
	claim := time.NewTimer(r.config.SessionClaim)
	defer claim.Stop()
	tokens := time.NewTicker(max(r.config.TokenCleaner, time.Second))
	defer tokens.Stop()
	keep := time.NewTicker(keepEvery)
	defer keep.Stop()
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	watch := time.NewTicker(time.Second)
	defer watch.Stop()
	if r.config.Placement.Replicas == 0 {
		watch.Stop()
	}
	wait := time.NewTimer(reconcileEvery)
	defer wait.Stop()
	for {
		select {
		case <-r.stop:
			return
		case <-claim.C:
			r.engine.Do(r.logoutUnclaimed)
			claim.Reset(reconcileEvery)
		case <-tokens.C:
			if r.config.TokenCleaner > 0 {
				r.engine.Do(r.dropExpiredTokens)
			}
		case <-keep.C:
			r.engine.Do(r.keep)
		case <-sweep.C:
			r.engine.Do(r.sweep)
		case <-watch.C:
			r.engine.Do(r.watchNodes)
		case <-wait.C:
			wait.Reset(r.completeRevocations())
		case <-r.Changed():
			if r.View().HasRevocations() {
				wait.Reset(revokeEvery)
			}
		}
	}
}

// sweep ends what nobody stands behind any more.
func (r *Replica) sweep() {
	if r.config.Claims {
		r.logoutAbandoned()
	}
	if r.config.Placement.Replicas > 0 {
		r.freePlaces()
		r.count()
		r.sayNodes()
	}
}

// keep puts the metadata into a checkpoint if it changed since the last one.
func (r *Replica) keep() {
	if op := r.group.Applied(); op > r.kept {
		r.kept = op
		r.engine.BeginCheckpoint()
	}
}

// own proposes an op of the primary itself; false when there is no room for it now, or another one leads.
func (r *Replica) own(op wire.Operation, client wire.U128, request uint64, body []byte) bool {
	if !r.primary {
		return false
	}
	p := proposal(op, client, request, 0, body)
	return r.engine.Loop.Propose(r.group, &p, nil)
}

// logoutUnclaimed ends the sessions found at start that no connection took up since, as far as
// there is room; the rest waits for the next look. So does a client with an op in flight: a Logout
// names no session and would end the one that a Register in front of it opens.
func (r *Replica) logoutUnclaimed() {
	for id, epoch := range r.unclaimed {
		if r.pipelined[id] > 0 {
			continue
		}
		if c := r.current.Client(id); c == nil || c.Epoch != epoch ||
			r.own(wire.OpLogout, id, noRequest, make([]byte, wire.HeaderSize)) {
			delete(r.unclaimed, id)
		}
	}
}

func (r *Replica) dropExpiredTokens() {
	n := 0
	for t := range r.current.ExpiredTokens(uint64(time.Now().UnixMicro())) {
		body := wire.LoggedDeleteToken{UserID: t.UserID, Name: []byte(t.Name), OnlyIfExpired: true}
		r.own(wire.OpDeleteToken, wire.U128{}, 0, body.Append(make([]byte, wire.HeaderSize)))
		if n++; n == tokensPerPass {
			return
		}
	}
}

// completeRevocations ends the hand-offs whose data is committed or whose time is over, and says
// when to look again.
func (r *Replica) completeRevocations() time.Duration {
	v := r.View()
	if !v.HasRevocations() {
		return reconcileEvery
	}
	now := uint64(time.Now().UnixMicro())
	for key, g := range v.Revoking() {
		t := v.TopicByKey(key.TopicKey())
		if t == nil {
			continue
		}
		for i := range g.Members {
			m := g.Members[i]
			for _, rev := range m.Revoking {
				expired := now >= rev.CreatedAt+uint64(r.config.Rebalance/time.Microsecond)
				if expired || !r.inFlight(v, t, g, rev.Partition, time.Now().Add(askLimit)) {
					r.complete(key, m.Client, rev.Partition)
				}
			}
		}
	}
	return revokeEvery
}

func (r *Replica) complete(key metadata.GroupKey, source wire.U128, partition uint32) {
	r.engine.Do(func() {
		body := wire.LoggedCompleteRevocation{
			Stream: wire.NumericID(key.Stream), Topic: wire.NumericID(key.Topic),
			Group: uint64(key.Group), Source: source, Partition: partition,
		}
		client := wire.RevocationClient(uint64(key.Group), partition)
		if r.pipelined[client] > 0 {
			return
		}
		r.own(wire.OpCompleteRevocation, client, noRequest, body.Append(make([]byte, wire.HeaderSize)))
	})
}

// askInFlight attaches to a join the partitions of its consumer group with polled but uncommitted
// data: they are handed over later instead of at once.
func (r *Replica) askInFlight(c *link.Call) {
	req, err := wire.DecodeGroupTarget(c.Body)
	if err != nil {
		return
	}
	v := r.View()
	t, code := v.Topic(req.Stream, req.Topic)
	if code != 0 {
		return
	}
	g := t.Group(req.Group)
	if g == nil {
		return
	}
	limit := time.Now().Add(askLimit)
	for id := range t.Partitions() {
		if g.Owner(id) != nil && r.inFlight(v, t, g, id, limit) {
			c.InFlight = append(c.InFlight, id)
		}
	}
}

// inFlight asks the partition whether the owner was given messages it has not committed.
func (r *Replica) inFlight(v *metadata.View, t *metadata.Topic, g *metadata.Group, partition uint32, limit time.Time) bool {
	p, ok := t.Partition(partition)
	if !ok || r.Partitions == nil {
		return false
	}
	group := t.GroupID(&p)
	for {
		ask := link.NewCall()
		ask.Internal, ask.Group, ask.MetadataOp = link.InternalInFlight, group, v.Op
		ask.Body = binary.LittleEndian.AppendUint32(nil, g.Group)
		ask.Body = binary.LittleEndian.AppendUint64(ask.Body, group)
		r.Partitions.Serve(ask)
		select {
		case <-ask.Done():
		case <-time.After(time.Until(limit)):
			return true
		}
		if ask.Status == 0 {
			return len(ask.Out) > 0
		}
		if c, ok := r.Partitions.(corrected); ok {
			c.Refused(ask)
		}
		if !ask.Status.IsTransient() || r.config.Engine.Stepped || time.Until(limit) < askPause {
			return true
		}
		time.Sleep(askPause)
	}
}

// corrected is a service that learns from a refusal where to ask the next time.
type corrected interface{ Refused(c *link.Call) }

var _ loop.Machine = (*Replica)(nil)
