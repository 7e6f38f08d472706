package conformance

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// The released clients' frames were recorded without answers (transcripts/released-0.11.0). Played
// back they must all be answered; the ones a client cannot do without must succeed.
const (
	expectAnswered = "answered" // any reply
	expectAccepted = "accepted" // a reply that refuses nothing

	releasedArea  = "released"
	codeAttach    = 14
	codeRouting   = 103
	codeRouted    = 104
	codeOffset    = 123
	opLogout      = 3
	firstPlane    = 128 // operations from here on change something
	offReqSession = 184
	offAttached   = headerSize + 16 // session and watermark in the body of an attach
)

// loadReleased makes a scenario of each recording of a released client.
func loadReleased() ([]*Scenario, error) {
	const dir = "transcripts/released-0.11.0"
	entries, err := fs.ReadDir(transcripts, dir)
	if err != nil {
		return nil, err
	}
	var all []*Scenario
	for _, e := range entries {
		text, err := fs.ReadFile(transcripts, path.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(e.Name(), ".jsonl")
		s := &Scenario{Name: "released-" + name, Area: releasedArea, About: "frames of the published clients are answered"}
		if name == "two-node-roster" {
			s.Cluster, s.About = true, "clients route by themselves when the roster shows several nodes"
		}
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			step, err := releasedStep(lines.Bytes(), len(s.Steps)+1)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", e.Name(), err)
			}
			s.Steps = append(s.Steps, step)
		}
		all = append(all, s)
	}
	return all, nil
}

func releasedStep(line []byte, n int) (Step, error) {
	var recorded struct {
		Name, Note string
		Send       hexText
	}
	if err := json.Unmarshal(line, &recorded); err != nil {
		return Step{}, err
	}
	fields := strings.Fields(recorded.Note) // conn 1 op …
	if len(fields) < 2 || len(recorded.Send) < headerSize {
		return Step{}, fmt.Errorf("step %d: no connection or no frame", n)
	}
	step := Step{N: n, Do: "call", Conn: fields[1], Note: recorded.Name + ": " + recorded.Note, Send: recorded.Send}
	frame := []byte(recorded.Send)
	session := step.Conn + ".session"
	if binary.LittleEndian.Uint64(frame[offReqSession:]) != 0 {
		step.Subst = append(step.Subst, Field{Off: offReqSession, Len: 8, Name: session})
	}
	op, code := frame[offReqOp], binary.LittleEndian.Uint32(frame[offReqCode:])
	if op == opNonReplicated && code == codeAttach && step.Conn != "1" {
		for _, off := range []int{offAttached, offAttached + 8} { // a session number is a watermark, too
			step.Subst = append(step.Subst, Field{Off: off, Len: 8, Name: "1.session"})
		}
	}
	switch {
	case recorded.Name == "login_bad":
		step.Expect, step.Frame = "eviction", eviction(9, 0)
	case strings.Contains(recorded.Note, "protocol 0.12.0") && op == opRegister:
		step.Expect, step.Frame = "eviction", eviction(14, 0x2c00)
	case op == opRegister:
		step.Expect, step.Bind = expectAccepted, []Field{{Off: headerSize + 8, Len: 8, Name: session}}
	case mustSucceed(recorded.Name, step.Conn, op, code):
		step.Expect = expectAccepted
	default:
		step.Expect = expectAnswered
	}
	return step, nil
}

// mustSucceed leaves out raw calls, which were made to see a refusal, and the producer helper,
// whose stream was made before the recording began.
func mustSucceed(name, conn string, op byte, code uint32) bool {
	if strings.HasPrefix(name, "raw_") || strings.HasPrefix(name, "helper_producer") {
		return false
	}
	return op >= firstPlane || op == opLogout || conn == "2" ||
		op == opNonReplicated && (code == codeRouting || code == codeRouted || code == codeOffset)
}

// eviction is a frame of this reason and, for both ends of its window, version.
func eviction(reason byte, version uint32) []byte {
	f := make([]byte, headerSize)
	f[offCommand], f[offReason] = commandEviction, reason
	binary.LittleEndian.PutUint32(f[offWindow:], version)
	binary.LittleEndian.PutUint32(f[offWindow+4:], version)
	return f
}
