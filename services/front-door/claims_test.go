package frontdoor

import (
	"reflect"
	"slices"
	"testing"

	"github.com/whippet-mq/whippet/libs/link"
	"github.com/whippet-mq/whippet/libs/wire"
)

// The primary hears of all sessions first, then of what changed, and of all again when it asks for it or
// could not be reached.
func TestClaims(t *testing.T) {
	w := startCluster(t, nil)
	var heard []link.Claims
	reply, status := []byte(nil), wire.Code(0)
	w.nodes[1].refusing(func(c *link.Call) bool {
		if c.Internal != link.InternalClaims {
			return false
		}
		q, ok := link.DecodeClaims(c.Body)
		if !ok {
			t.Error("claims do not decode")
		}
		slices.SortFunc(q.Held, func(a, b link.Claim) int { return int(a.Session) - int(b.Session) })
		heard = append(heard, q)
		c.Out, c.Status = reply, status
		reply, status = nil, 0
		return true
	})
	claimed := func(want ...link.Claims) {
		t.Helper()
		for i := range want {
			want[i].Door = w.core.process
		}
		if !reflect.DeepEqual(heard, want) {
			t.Errorf("heard %+v, want %+v", heard, want)
		}
		heard = nil
	}
	c := &claimer{server: w.Server}
	a := w.root(t)
	c.tell()
	first := link.Claim{Client: a.id, Session: a.session}
	claimed(link.Claims{Held: []link.Claim{first}})
	b := w.root(t)
	second := link.Claim{Client: b.id, Session: b.session}
	c.tell()
	claimed(link.Claims{Sequence: 1, Held: []link.Claim{second}})
	c.tell()
	claimed(link.Claims{Sequence: 2})
	a.ok(a.call(wire.OpLogout, 0, nil))
	c.tell()
	claimed(link.Claims{Sequence: 3, Dropped: []link.Claim{first}})
	reply = []byte{link.ClaimsAgain}
	c.tell()
	claimed(link.Claims{Sequence: 4}, link.Claims{Held: []link.Claim{second}})
	status = wire.CodeTransientNotAccepted
	c.tell()
	claimed(link.Claims{Sequence: 1})
	for _, id := range []uint8{2, 3, 1} { // the router tries the others: they refuse
		w.nodes[id].refusing(w.nodes[1].refuse)
	}
	c.tell()
	claimed(link.Claims{Held: []link.Claim{second}})
}
