package conformance

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

// recordedSteps calls f for each step of the recordings that has a frame to judge.
func recordedSteps(t *testing.T, f func(s *Scenario, step *Step)) {
	all, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 146 {
		t.Fatalf("%d scenarios, want 146", len(all))
	}
	for _, s := range all {
		for i := range s.Steps {
			if step := &s.Steps[i]; step.Expect == "reply" || step.Expect == "eviction" {
				f(s, step)
			}
		}
	}
}

func wanted(step *Step) map[string][]byte {
	bound := map[string][]byte{}
	for _, f := range step.Want {
		bound[f.Name] = step.Frame[f.Off:f.end()]
	}
	return bound
}

func TestRecordedAnswersSatisfyTheirJudge(t *testing.T) {
	n := 0
	recordedSteps(t, func(s *Scenario, step *Step) {
		n++
		if step.Check == "batches" {
			if err := checkBatches(step.Frame[headerSize:]); err != nil {
				t.Errorf("%s step %d: %v", s.Name, step.N, err)
			}
		}
		if step.Check != "" && step.Check != "batches" {
			return // archives are recorded without their content
		}
		if _, err := judge(step, step.Frame, wanted(step)); err != nil {
			t.Errorf("%s step %d: %v", s.Name, step.N, err)
		}
	})
	if n < 6000 {
		t.Fatalf("only %d steps judged", n)
	}
}

// TestJudgeSeesDamage changes each recorded answer outside what may differ; the judge must object.
func TestJudgeSeesDamage(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	recordedSteps(t, func(s *Scenario, step *Step) {
		if step.Check != "" && step.Check != "batches" {
			return
		}
		free := append(append([]Field{}, step.Mask...), step.Loose...)
		judged := []int{offCommand}
		if step.Frame[offCommand] == commandReply {
			judged = append(judged, offReplyReq, offReplyReq+7, offReplyOp, offReplyStatus+1)
		} else {
			judged = append(judged, offReason, offWindow, 160, 70)
		}
	body:
		for at := headerSize; at < len(step.Frame); at++ {
			for _, f := range free {
				if f.Off <= at && at < f.end() {
					continue body
				}
			}
			judged = append(judged, at)
		}
		for range min(12, len(judged)) {
			at := judged[random.IntN(len(judged))]
			got := bytes.Clone(step.Frame)
			got[at] ^= byte(1 + random.IntN(255))
			if _, err := judge(step, got, wanted(step)); err == nil {
				t.Errorf("%s step %d: byte %d changed unnoticed", s.Name, step.N, at)
			}
		}
		for _, got := range [][]byte{append(bytes.Clone(step.Frame), 0), step.Frame[:max(headerSize, len(step.Frame)-1)]} {
			if _, err := judge(step, got, wanted(step)); err == nil && len(got) != len(step.Frame) && !endsFree(step) {
				t.Errorf("%s step %d: %d bytes instead of %d unnoticed", s.Name, step.N, len(got), len(step.Frame))
			}
		}
	})
}

// endsFree reports whether the frame ends in a string or tail of any length.
func endsFree(step *Step) bool {
	for _, f := range step.Mask {
		if f.Form == "rest" {
			return true
		}
	}
	return false
}

func TestRecordsInAnyOrder(t *testing.T) {
	frame := func(body string) []byte {
		f := make([]byte, headerSize, headerSize+len(body))
		f[offCommand] = commandReply
		return append(f, body...)
	}
	step := &Step{
		Frame:    frame("<one1><three333>\x03abc!"),
		AnyOrder: []Field{{Off: 256, Len: 6}, {Off: 262, Len: 10}},
		Mask:     []Field{{Off: 260, Len: 1}, {Off: 272, Len: 4, Form: "str8"}},
		Bind:     []Field{{Off: 268, Len: 3, Name: "threes"}},
	}
	for body, ok := range map[string]bool{
		"<one1><three333>\x03abc!":     true,
		"<three333><oneX>\x03abc!":     true,
		"<three333><one1>\x05abcde!":   true,
		"<three333><one1>\x00!":        true,
		"<three333><three333>\x00!":    false,
		"<one1><one1>\x00!":            false,
		"<three333><one1>\x05abcd!":    false,
		"<three333><one1>\x03abc?":     false,
		"<three333>\x03abc!":           false,
		"<three333><one1>\x03abc!\x00": false,
	} {
		bound, err := judge(step, frame(body), nil)
		if (err == nil) != ok {
			t.Errorf("%q: %v, want fit %v", body, err, ok)
		}
		if ok && string(bound["threes"]) != "333" {
			t.Errorf("%q: bound %q", body, bound["threes"])
		}
	}
}

func TestHexText(t *testing.T) {
	got, err := decodeHexText("01(00*3)ff(0102*2)")
	if err != nil || !bytes.Equal(got, []byte{1, 0, 0, 0, 255, 1, 2, 1, 2}) {
		t.Errorf("%x, %v", got, err)
	}
	for _, bad := range []string{"0", "(00*", "(00)", "(0*2)", "(00*x)", "(00*-1)", "(00*999999999)", "zz"} {
		if _, err := decodeHexText(bad); err == nil {
			t.Errorf("%q decoded", bad)
		}
	}
}

func TestSubstitution(t *testing.T) {
	p := &Player{bound: map[string][]byte{"n": {0xff, 1}, "s": []byte("long")}}
	frame := make([]byte, headerSize)
	frame[offSize] = 6
	frame[offSize+1] = 1
	frame = append(frame, 1, 'x', 9, 9, 7, 7)
	got, err := p.request(&Step{Send: frame, Subst: []Field{
		{Off: 100, Len: 2, Name: "n", Form: "1"}, {Off: 102, Len: 2, Name: "n", Form: "-1"},
		{Off: 256, Name: "s", Form: "str8"}, {Off: 258, Len: 2, Name: "n"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if want := "\x04long\xff\x01\x07\x07"; string(got[headerSize:]) != want {
		t.Errorf("body %q, want %q", got[headerSize:], want)
	}
	if !bytes.Equal(got[100:104], []byte{0, 2, 0xfe, 1}) || got[offSize] != 9 {
		t.Errorf("numbers %x, size %d", got[100:104], got[offSize])
	}
	if _, err := p.request(&Step{Send: frame, Subst: []Field{{Off: 100, Len: 2, Name: "?"}}}); err == nil || !strings.Contains(err.Error(), "?") {
		t.Errorf("unbound name: %v", err)
	}
}
