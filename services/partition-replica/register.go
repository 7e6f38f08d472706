package partitionreplica

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/wire"
)

const (
	// aliveEvery is how often the metadata primary hears that this node is up.
	aliveEvery = 500 * time.Millisecond
	// askLimit is how long, in milliseconds, it may take to answer.
	askLimit = 500
	// retryAlive is how soon it is said again when nobody took it.
	retryAlive = 100 * time.Millisecond
	// Pauses between attempts to register: nothing works before, and whoever else is new asks at the same time.
	shortestPause = 20 * time.Millisecond
	longestPause  = 250 * time.Millisecond
)

// Errors of a registration that can not succeed as it is.
var (
	// ErrNotTaken: the cluster does not take nodes.
	ErrNotTaken = errors.New("partition replica: the cluster does not register nodes")
	// ErrIDLost: the id of this node was given to another one while it was away.
	ErrIDLost = errors.New("partition replica: the id of this node belongs to another one by now")
)

// Registrar keeps this node among the nodes of the cluster: it gets the node its id and tells where it is
// reached and that it is up.
type Registrar struct {
	node wire.Node
	ask  func(*link.Call)
	log  hclog.Logger
	op   uint64
}

// NewRegistrar registers node, whose ID is the one it had, or wire.NoNode. ask makes a call to the
// metadata primary, once, and returns with the answer.
func NewRegistrar(node wire.Node, ask func(*link.Call), log hclog.Logger) *Registrar {
	return &Registrar{node: node, ask: ask, log: log}
}

// Register returns the id of the node once the cluster has one for it. It tries until ctx is done.
func (r *Registrar) Register(ctx context.Context) (uint8, error) {
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		id, code := r.try()
		switch code {
		case 0:
			r.node.ID = id
			return id, nil
		case wire.CodeInvalidCommand:
			return 0, ErrNotTaken
		case wire.CodeInvalidIdentifier:
			r.log.Warn("no id for this node yet, it tries again") // another one took it at the same time, or all are taken
		}
		if !wait(ctx, pause) {
			return 0, fmt.Errorf("partition replica: registration: %w", ctx.Err())
		}
	}
}

// Op is the metadata op of the registration. Whatever was placed on this node before is at or below it.
func (r *Registrar) Op() uint64 { return r.op }

func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (r *Registrar) try() (uint8, wire.Code) {
	c := r.call(link.InternalRegister)
	if c.Status != 0 {
		return 0, c.Status
	}
	payload, err := wire.DecodeResult(c.Out)
	switch code := wire.Code(0); {
	case errors.As(err, &code):
		return 0, code
	case err != nil || len(payload) != 1:
		return 0, wire.CodeTransientNotAccepted
	}
	r.op = c.Op
	return payload[0], 0
}

func (r *Registrar) call(what link.Internal) *link.Call {
	c := link.NewCall()
	c.Group, c.Internal, c.Deadline, c.Body = wire.MetadataGroup, what, askLimit, r.node.Append(nil)
	c.Header.Operation = wire.OpNonReplicated
	r.ask(c)
	return c
}

// Keep says that the node is up until ctx is done, and registers it again when the cluster has forgotten
// it. The error is ErrIDLost or ErrNotTaken, nil at the end of ctx.
func (r *Registrar) Keep(ctx context.Context) error {
	for pause := aliveEvery; wait(ctx, pause); {
		status := r.call(link.InternalAlive).Status
		if pause = aliveEvery; status.IsTransient() {
			pause = retryAlive // another primary is to hear it soon: it places nothing here before
		}
		if status != wire.CodeResourceNotFound {
			continue
		}
		had := r.node.ID
		id, err := r.Register(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case id != had:
			return ErrIDLost
		}
	}
	return nil
}
