//go:build linux

package cluster

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// ms are milliseconds as events have them.
func ms(t int64) int64 { return t * time.Millisecond.Nanoseconds() }

func sent(node int, from, to int64, message, offset uint64) *event {
	return &event{Kind: sendKind, Object: logName(0), Node: node, Phase: "bad", Call: ms(from), Return: ms(to), Result: done, Value: message, Offset: offset}
}

func polled(node int, from, to int64, at uint64, found ...uint64) *event {
	return &event{
		Kind: pollKind, Object: logName(0), Node: node, Phase: "bad", Call: ms(from), Return: ms(to), Result: done,
		Value: at, Count: 3, Offset: at, Found: found,
	}
}

func register(k kind, node int, from, to int64, r result, value uint64) *event {
	e := &event{Kind: k, Object: "x", Node: node, Phase: "bad", Call: ms(from), Return: ms(to), Result: r, Value: value}
	if k == offsetKind {
		e.Value, e.Offset = 0, value
	}
	return e
}

// TestChecksFind shows which histories break a promise, and which do not although they are odd.
func TestChecksFind(t *testing.T) {
	inPhase := func(e *event, phase string) *event { e.Phase = phase; return e }
	withResult := func(e *event, r result) *event { e.Result = r; return e }
	for name, c := range map[string]struct {
		events []*event
		final  []uint64
		broken bool
	}{
		"all well":                              {[]*event{sent(0, 0, 1, 7, 0), sent(1, 2, 3, 8, 1), polled(0, 4, 5, 0, 7, 8)}, []uint64{7, 8}, false},
		"acknowledged, lost":                    {[]*event{sent(0, 0, 1, 7, 0), sent(1, 2, 3, 8, 1)}, []uint64{7}, true},
		"acknowledged elsewhere":                {[]*event{sent(0, 0, 1, 7, 1)}, []uint64{8, 7}, true},
		"shown, lost":                           {[]*event{withResult(sent(0, 0, 1, 7, 0), unknown), polled(0, 2, 3, 0, 7)}, nil, true},
		"unknown, found later":                  {[]*event{withResult(sent(0, 0, 1, 7, 0), unknown), polled(0, 9, 10, 0), polled(0, 11, 12, 0, 7)}, []uint64{7}, false},
		"twice":                                 {[]*event{withResult(sent(0, 0, 1, 7, 0), unknown)}, []uint64{7, 7}, true},
		"never sent":                            {[]*event{polled(0, 0, 1, 0, 7)}, []uint64{7}, true},
		"shown before it was sent":              {[]*event{polled(0, 0, 1, 0, 7), sent(0, 2, 3, 7, 0)}, []uint64{7}, true},
		"other order than the answers":          {[]*event{sent(0, 0, 1, 7, 1), sent(0, 2, 3, 8, 0)}, []uint64{8, 7}, true},
		"stale for half a second":               {[]*event{sent(0, 0, 1, 7, 0), polled(1, 450, 451, 0)}, []uint64{7}, false},
		"stale for too long":                    {[]*event{sent(0, 0, 1, 7, 0), polled(1, 502, 503, 0)}, []uint64{7}, true},
		"stale while all is well":               {[]*event{sent(0, 0, 1, 7, 0), inPhase(polled(1, 2, 3, 0), calm)}, []uint64{7}, true},
		"own message not seen":                  {[]*event{sent(1, 0, 1, 7, 0), polled(1, 2, 3, 0)}, []uint64{7}, true},
		"one node goes back":                    {[]*event{sent(0, 0, 1, 7, 0), polled(1, 2, 3, 0, 7), polled(1, 4, 5, 0)}, []uint64{7}, true},
		"another node behind":                   {[]*event{sent(0, 0, 1, 7, 0), polled(1, 2, 3, 0, 7), polled(2, 4, 5, 0)}, []uint64{7}, false},
		"offset of a store":                     {[]*event{register(storeKind, 0, 0, 1, done, 5), register(offsetKind, 1, 2, 3, done, 5)}, nil, false},
		"offset nobody stored":                  {[]*event{register(storeKind, 0, 0, 1, done, 5), register(offsetKind, 1, 2, 3, done, 6)}, nil, true},
		"own offset not seen":                   {[]*event{register(storeKind, 0, 0, 1, done, 5), register(offsetKind, 0, 2, 3, no, 0)}, nil, true},
		"offset of another node not seen":       {[]*event{register(storeKind, 0, 0, 1, done, 5), register(offsetKind, 1, 2, 3, no, 0)}, nil, false},
		"offset not seen for too long":          {[]*event{register(storeKind, 0, 0, 1, done, 5), register(offsetKind, 1, 502, 503, no, 0)}, nil, true},
		"store of unknown outcome, late":        {[]*event{register(storeKind, 0, 0, 1, unknown, 5), register(offsetKind, 0, 2, 3, no, 0), register(offsetKind, 0, 4, 5, done, 5)}, nil, false},
		"stream made and found":                 {[]*event{register(createKind, 0, 0, 1, done, 0), register(existsKind, 1, 2, 3, done, 0)}, nil, false},
		"stream made and not found":             {[]*event{register(createKind, 0, 0, 1, done, 0), register(existsKind, 1, 2, 3, no, 0)}, nil, true},
		"stream deleted twice":                  {[]*event{register(createKind, 0, 0, 1, done, 0), register(deleteKind, 1, 2, 3, done, 0), register(deleteKind, 0, 4, 5, done, 0)}, nil, true},
		"stream that was there may have been":   {[]*event{register(createKind, 0, 0, 1, unknown, 0), register(createKind, 1, 2, 3, no, 0)}, nil, false},
		"stream that was there without a maker": {[]*event{register(createKind, 0, 0, 1, refused, 0), register(createKind, 1, 2, 3, no, 0)}, nil, true},
		"an answer that is none":                {[]*event{register(createKind, 0, 0, 1, wrong, 0)}, nil, true},
	} {
		found := checkHistory(c.events, map[string][]uint64{logName(0): c.final}, 3, calm)
		if (len(found) > 0) != c.broken {
			t.Errorf("%s: found %v", name, found)
		}
	}
}

// TestLogCheckAgreesWithPorcupine compares the two on small random histories, right and wrong ones.
func TestLogCheckAgreesWithPorcupine(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	broken := 0
	const histories = 20_000
	for range histories {
		var events []*event
		var final []uint64
		now := int64(0)
		for range 1 + random.IntN(7) {
			now += random.Int64N(300)
			to := now + random.Int64N(900)
			node := random.IntN(2)
			if random.IntN(2) == 0 {
				message := uint64(100 + len(final))
				e := sent(node, now, to, message, uint64(len(final)))
				if random.IntN(4) == 0 {
					e.Result = unknown
				}
				final = append(final, message)
				events = append(events, e)
				continue
			}
			from := random.IntN(len(final) + 1)
			events = append(events, polled(node, now, to, uint64(from), final[from:min(from+random.IntN(4), len(final))]...))
		}
		for i, e := range events { // sends that overlap may be put in another order
			if i > 0 && e.Kind == sendKind && events[i-1].Kind == sendKind && random.IntN(3) == 0 {
				other := events[i-1]
				e.Value, other.Value, e.Offset, other.Offset = other.Value, e.Value, other.Offset, e.Offset
			}
		}
		for node := everyNode; node < 2; node++ {
			fast := checkLog(events, final, node, calm) == nil
			if !fast {
				broken++
			}
			if slow := porcupine.CheckOperations(logModel, drawn(events, final, node, calm)); slow != fast {
				t.Fatalf("node %d: linearizable is %v, by porcupine %v:\n%v\n%v", node, fast, slow, events, final)
			}
		}
	}
	if broken < histories/10 || broken > histories*2 {
		t.Errorf("%d of %d histories are wrong: the comparison says little", broken, 3*histories)
	}
}

// TestOffsetCheckAgreesWithPorcupine compares the two on small random histories, right and wrong ones.
func TestOffsetCheckAgreesWithPorcupine(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	broken := 0
	const histories = 20_000
	for range histories {
		var events []*event
		now, stored := int64(0), uint64(0)
		for range 1 + random.IntN(8) {
			now += random.Int64N(300)
			to, node := now+random.Int64N(900), random.IntN(2)
			if random.IntN(2) == 0 {
				stored++
				e := register(storeKind, node, now, to, done, stored)
				if random.IntN(4) == 0 {
					e.Result = unknown
				}
				events = append(events, e)
				continue
			}
			events = append(events, register(offsetKind, node, now, to, done, stored-min(stored, uint64(random.IntN(3)))))
		}
		for node := everyNode; node < 2; node++ {
			fast := checkOffsets(events, node, calm) == nil
			if !fast {
				broken++
			}
			if slow := porcupine.CheckOperations(offsetModel, operations(events, node, calm)); slow != fast {
				t.Fatalf("node %d: linearizable is %v, by porcupine %v:\n%v", node, fast, slow, events)
			}
		}
	}
	if broken < histories/10 || broken > histories*2 {
		t.Errorf("%d of %d histories are wrong: the comparison says little", broken, 3*histories)
	}
}
