package metadata

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/whippet-mq/whippet/libs/wire"
)

// The transcripts are conversations recorded from the reference server; their README describes the
// format. They are played against the thinnest front-door there can be (player_test.go), and what the
// metadata alone decides is judged: every metadata command, and reads of streams, topics, users and groups.
const transcripts = "../../tools/conformance/transcripts/client"

// elsewhere are scenarios whose outcome depends on what this package does not own.
var elsewhere = map[string]string{
	"groups-heartbeat":                "evicts by a timer",
	"groups-revocation-source-leaves": "needs polls to put partitions in flight",
	"groups-revocation-target-leaves": "needs polls to put partitions in flight",
	"login-close-after-eviction":      "version gate of the login",
	"login-version-gate":              "version gate of the login",
	"login-credentials":               "order of password and token logins",
	"login-same-client-id-again":      "unbinds another connection of the node",
}

type step struct {
	N      int               `json:"n"`
	Do     string            `json:"do"`
	Conn   string            `json:"conn"`
	Note   string            `json:"note"`
	Send   string            `json:"send"`
	Subst  [][]any           `json:"subst"`
	Expect string            `json:"expect"`
	Frame  string            `json:"frame"`
	Mask   [][]any           `json:"mask"`
	Loose  [][]any           `json:"loose"`
	Want   [][]any           `json:"want"`
	Bind   [][]any           `json:"bind"`
	AnyOrd [][]int           `json:"any_order"`
	Better bool              `json:"better"`
	Env    map[string]string `json:"env"`
	Quirk  any               `json:"quirk"`
	Seal   bool              `json:"seal"`
}

var runs = regexp.MustCompile(`\(([0-9a-f]+)\*(\d+)\)`)

func unhex(t *testing.T, s string) []byte {
	s = runs.ReplaceAllStringFunc(s, func(m string) string {
		parts := runs.FindStringSubmatch(m)
		n, _ := strconv.Atoi(parts[2])
		return strings.Repeat(parts[1], n)
	})
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatalf("hex: %v", err)
	}
	return b
}

func TestTranscripts(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(transcripts, "*.jsonl"))
	if len(files) < 100 {
		t.Fatalf("%d transcripts in %s", len(files), transcripts)
	}
	judged := 0
	for _, file := range files {
		scenario := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		if elsewhere[scenario] == "" {
			t.Run(scenario, func(t *testing.T) { judged += play(t, file) })
		}
	}
	if judged < 2500 {
		t.Errorf("only %d answers were judged", judged)
	}
}

func play(t *testing.T, file string) (judged int) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p := &player{log: newLog(t), bound: map[string]*binding{}, names: map[string][]byte{}, passwords: map[string]string{rootHash: "iggy"}}
	for line := range bytes.Lines(data) {
		var s step
		if err := json.Unmarshal(line, &s); err != nil {
			t.Fatal(err)
		}
		if s.Do == "" {
			if s.Quirk != nil {
				return 0 // known, not to be copied
			}
			limits := Limits{}
			limits.Clients, _ = strconv.Atoi(s.Env["IGGY_METADATA_CLIENTS_TABLE_MAX"])
			limits.Tokens, _ = strconv.Atoi(s.Env["IGGY_PERSONAL_ACCESS_TOKEN_MAX_TOKENS_PER_USER"])
			p.v = New(RootUser{"iggy", rootHash}, limits)
			continue
		}
		p.step(t, &s)
	}
	snapshot(t, p.v)
	return p.judged
}

func (p *player) step(t *testing.T, s *step) {
	switch s.Do {
	case "restart", "crash":
		b := snapshot(t, p.v)
		p.v, _ = DecodeSnapshot(b, p.v.limits)
		clear(p.bound)
	case "close":
		if b := p.bound[s.Conn]; b != nil {
			if c := p.v.Client(b.id); c != nil && c.Epoch == b.epoch {
				p.logout(b.id)
			}
			delete(p.bound, s.Conn)
		}
	case "sleep":
		p.now += 3_000_000
	case "call":
		frame := p.substitute(t, s)
		if len(frame) < wire.HeaderSize {
			return
		}
		var h wire.RequestHeader
		if h.Decode(frame) != nil || h.Validate() != nil {
			return
		}
		if got := p.answer(&h, frame[wire.HeaderSize:], s); got != nil {
			p.judge(t, s, got)
		}
	}
}

func (p *player) substitute(t *testing.T, s *step) []byte {
	frame := unhex(t, s.Send)
	for _, sub := range s.Subst {
		off, n, value := int(sub[0].(float64)), int(sub[1].(float64)), p.names[sub[2].(string)]
		if len(sub) > 3 && sub[3] == "str8" {
			frame = slices.Concat(frame[:off], []byte{byte(len(value))}, value, frame[off+1:])
			binary.LittleEndian.PutUint32(frame[48:], uint32(len(frame)))
			continue
		}
		if len(value) < n {
			continue
		}
		copy(frame[off:off+n], value)
		if len(sub) > 3 {
			d, _ := strconv.ParseInt(sub[3].(string), 10, 64)
			binary.LittleEndian.PutUint64(frame[off:], binary.LittleEndian.Uint64(frame[off:])+uint64(d))
		}
	}
	return frame
}

func (p *player) judge(t *testing.T, s *step, got []byte) {
	for _, b := range s.Bind {
		off, n := int(b[0].(float64)), 0
		if f, ok := b[1].(float64); ok {
			n = int(f)
		}
		if off+n <= len(got) {
			p.names[b[2].(string)] = slices.Clone(got[off : off+n])
		}
	}
	if s.Expect == "silence" || s.Better && refusal(got) {
		return
	}
	want := unhex(t, s.Frame)
	for _, w := range s.Want {
		off, n := int(w[0].(float64)), int(w[1].(float64))
		if bound := p.names[w[2].(string)]; len(bound) >= n && off+n <= len(want) {
			copy(want[off:off+n], bound)
		}
	}
	p.judged++
	if len(s.AnyOrd) > 0 {
		return
	}
	w, g := masked(want, s, want), masked(got, s, want)
	if !bytes.Equal(w, g) {
		t.Errorf("step %d, %s\n want %x\n got  %x", s.N, s.Note, w[min(len(w), 200):], g[min(len(g), 200):])
	}
}

// refusal reports whether a frame is a status, a result or an eviction: where the reference is silent or
// vague, any of them is better.
func refusal(frame []byte) bool {
	var h wire.ReplyHeader
	if h.Decode(frame) != nil || h.Status != 0 {
		return true
	}
	_, err := wire.DecodeResult(frame[wire.HeaderSize:])
	return err != nil
}

// masked zeroes what is not judged and shrinks strings of free length to nothing.
func masked(b []byte, s *step, want []byte) []byte {
	out := slices.Clone(b)
	if len(out) > 216 && out[60] == byte(wire.CommandReply) {
		keep := slices.Clone(out[200:220])
		size := slices.Clone(out[48:52])
		clear(out[:48])
		clear(out[52:60])
		clear(out[61:200])
		copy(out[48:], size)
		copy(out[200:], keep)
	} else if len(out) == 256 {
		clear(out[:48])
		clear(out[52:60])
		clear(out[61:144])
	}
	for _, m := range slices.Concat(s.Mask, s.Loose) {
		off := int(m[0].(float64))
		n := 0
		if f, ok := m[1].(float64); ok {
			n = int(f)
		}
		if len(m) > 3 && (m[3] == "str8" || m[3] == "str32" || m[3] == "rest") {
			clear(out[48:52])
			return out[:min(off, len(out))]
		}
		if off < len(out) {
			clear(out[off:min(off+n, len(out))])
		}
	}
	return out
}
