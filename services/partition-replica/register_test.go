package partitionreplica

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/wire"
)

// primary answers registrations with what is next in its list, the last one for ever.
type primary struct {
	t       *testing.T
	answers []func(*link.Call)
	asked   []link.Internal
	last    wire.Node
}

func (p *primary) ask(c *link.Call) {
	if c.Group != wire.MetadataGroup || c.Deadline == 0 {
		p.t.Errorf("group %#x, deadline %d", c.Group, c.Deadline)
	}
	n, err := wire.DecodeNode(c.Body)
	if err != nil {
		p.t.Error(err)
	}
	n.Zone, n.Replica, n.Service = nil, nil, nil
	p.asked, p.last = append(p.asked, c.Internal), n
	p.answers[0](c)
	if len(p.answers) > 1 {
		p.answers = p.answers[1:]
	}
}

func given(id uint8) func(*link.Call) {
	return func(c *link.Call) { c.Out, c.Op = append(wire.AppendSuccess(c.Out), id), 100+uint64(id) }
}

func rejected(code wire.Code) func(*link.Call) {
	return func(c *link.Call) { c.Out = wire.AppendRejection(c.Out, code) }
}

func status(code wire.Code) func(*link.Call) { return func(c *link.Call) { c.Status = code } }

func registrar(p *primary) *Registrar {
	return NewRegistrar(wire.Node{UUID: wire.U128{Lo: 1}, ID: wire.NoNode, Role: wire.RolePartition, Epoch: 1}, p.ask, hclog.NewNullLogger())
}

// A node tries until the cluster has an id for it.
func TestRegister(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &primary{t: t, answers: []func(*link.Call){
			status(wire.CodeTransientNotAccepted), rejected(wire.CodeInvalidIdentifier), status(wire.CodeInvalidIdentifier), given(7),
		}}
		r := registrar(p)
		id, err := r.Register(context.Background())
		if id != 7 || err != nil || len(p.asked) != 4 || r.Op() != 107 {
			t.Errorf("id %d at op %d, %v after %d attempts", id, r.Op(), err, len(p.asked))
		}
		p = &primary{t: t, answers: []func(*link.Call){status(wire.CodeInvalidCommand)}}
		if _, err := registrar(p).Register(context.Background()); !errors.Is(err, ErrNotTaken) {
			t.Error(err)
		}
		p = &primary{t: t, answers: []func(*link.Call){status(wire.CodeTransientNotAccepted)}}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := registrar(p).Register(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// A node that is forgotten registers again under its id; when somebody else has it by now, it has to
// stop.
func TestKeepRegistered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &primary{t: t, answers: []func(*link.Call){
			given(7), status(0), status(wire.CodeTransientNotAccepted), status(wire.CodeResourceNotFound), given(7), status(0),
		}}
		r := registrar(p)
		if _, err := r.Register(context.Background()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 3*aliveEvery+retryAlive+aliveEvery/2)
		defer cancel()
		if err := r.Keep(ctx); err != nil {
			t.Fatal(err)
		}
		want := []link.Internal{link.InternalRegister, link.InternalAlive, link.InternalAlive, link.InternalAlive, link.InternalRegister, link.InternalAlive}
		for i := range want {
			if i >= len(p.asked) || p.asked[i] != want[i] {
				t.Fatalf("asked %v, want %v", p.asked, want)
			}
		}
		if p.last.ID != 7 {
			t.Errorf("alive as node %d", p.last.ID)
		}
		p.answers = []func(*link.Call){status(wire.CodeResourceNotFound), given(8)}
		if err := r.Keep(context.Background()); !errors.Is(err, ErrIDLost) {
			t.Error(err)
		}
	})
}
