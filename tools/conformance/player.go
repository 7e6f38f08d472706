package conformance

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/zeebo/xxh3"
)

// Server is what a scenario is played against.
type Server interface {
	// Address is where clients connect now; a restart may change it.
	Address() string
	// Restart stops the server in an orderly way, or kills it, and starts it on the same data.
	// ErrFixed when the server cannot be restarted from here.
	Restart(kill bool) error
}

// ErrFixed says that a server of the outside world cannot be restarted by the player.
var ErrFixed = errors.New("this server is not ours to restart")

const (
	answerTime  = 2 * time.Second // a step's allowance when the scenario names none
	loginTime   = 5 * time.Second
	retryPause  = 50 * time.Millisecond // before a request refused with 57 or 58 goes out again
	retryTime   = 30 * time.Second      // for how long clients repeat such a request
	untilPause  = 20 * time.Millisecond // between two tries of an answer that may lag
	opRegister  = 1
	offReqOp    = 176
	pieceOfNews = 160 // characters of a step's note quoted in a failure
)

// Failure says where a scenario went wrong.
type Failure struct {
	Step int
	Note string
	Err  error
}

func (f *Failure) Error() string {
	note := f.Note
	if len(note) > pieceOfNews {
		note = note[:pieceOfNews] + "…"
	}
	return fmt.Sprintf("step %d (%s): %v", f.Step, note, f.Err)
}

func (f *Failure) Unwrap() error { return f.Err }

// Player runs scenarios against one server, one at a time.
type Player struct {
	Server Server
	// Patience multiplies the time a step allows for an answer, for slow machines; below 1 means 1.
	Patience int
	Carrier  string // one of Carriers; "" is tcp
	Roster   int    // nodes that show each other, 0: one, as recorded

	conns map[string]*conn
	bound map[string][]byte
}

// Play runs s and returns the first *Failure.
func (p *Player) Play(s *Scenario) error {
	p.conns, p.bound = map[string]*conn{}, map[string][]byte{}
	defer p.hangUp()
	for i := range s.Steps {
		if err := p.step(&s.Steps[i]); err != nil {
			return &Failure{s.Steps[i].N, s.Steps[i].Note, err}
		}
	}
	return nil
}

func (p *Player) hangUp() {
	for label, c := range p.conns {
		c.hangUp()
		delete(p.conns, label)
	}
}

func (p *Player) step(step *Step) error {
	switch step.Do {
	case "sleep":
		time.Sleep(time.Duration(step.Ms) * time.Millisecond)
		return nil
	case "restart", "crash":
		for label, c := range p.conns {
			defer c.Close()
			delete(p.conns, label)
		}
		return p.Server.Restart(step.Do == "crash")
	case "close":
		if c := p.conns[step.Conn]; c != nil {
			c.Close()
			delete(p.conns, step.Conn)
		}
		return nil
	}
	c, err := p.connect(step.Conn)
	if err != nil {
		return err
	}
	switch step.Do {
	case "open":
		return nil
	case "post":
		frame, err := p.request(step)
		if err != nil {
			return err
		}
		return c.send(frame)
	case "recv":
		got, err := c.receive(p.allowance(step))
		return p.settle(step, got, err)
	case "call":
		frame, err := p.request(step)
		if err != nil {
			return err
		}
		return p.call(c, step, frame)
	}
	return fmt.Errorf("unknown step %q", step.Do)
}

func (p *Player) connect(label string) (*conn, error) {
	if c := p.conns[label]; c != nil {
		return c, nil
	}
	c, err := dialCarrier(p.Server, p.Carrier)
	if err != nil {
		return nil, err
	}
	p.conns[label] = c
	return c, nil
}

// call sends a request and judges the answer, repeating it as clients do.
func (p *Player) call(c *conn, step *Step, frame []byte) error {
	started := time.Now()
	for {
		err := c.send(frame)
		var got []byte
		if err == nil {
			got, err = c.receive(p.allowance(step))
		}
		recorded(p.Carrier, frame, got)
		verdict := p.settle(step, got, err)
		pause, limit := untilPause, p.allowance(step)
		switch {
		case verdict == nil || got == nil:
			return verdict
		case retryable(got):
			pause, limit = retryPause, retryTime
		case !step.Until:
			return verdict
		}
		if time.Since(started) > limit {
			return verdict
		}
		time.Sleep(pause)
	}
}

// settle judges what a step led to: a frame, or the error of waiting for one.
func (p *Player) settle(step *Step, got []byte, err error) error {
	if errors.Is(err, errClosed) {
		p.conns[step.Conn].Close()
		delete(p.conns, step.Conn)
	}
	switch {
	case step.Expect == "closed":
		if errors.Is(err, errClosed) {
			return nil
		}
		return fmt.Errorf("want the connection closed, got %s", outcome(got, err))
	case step.Better && err == nil && typedRefusal(got):
		return nil
	case step.Expect == "silence":
		if errors.Is(err, errSilent) && !step.Better {
			return nil
		}
		if step.Better {
			return fmt.Errorf("want a refusal, got %s", outcome(got, err))
		}
		return fmt.Errorf("want silence, got %s", outcome(got, err))
	case step.Expect == expectAnswered || step.Expect == expectAccepted:
		return p.settleReleased(step, got, err)
	case step.Expect != "reply" && step.Expect != "eviction":
		return fmt.Errorf("unknown expectation %q", step.Expect)
	case err != nil:
		return fmt.Errorf("want %s, got %w", describe(step.Frame), err)
	}
	if p.Roster > 0 && step.asksRoster() {
		return judgeRoster(step, got, p.Roster)
	}
	fresh, err := judge(step, got, p.bound)
	for name, b := range fresh {
		p.bound[name] = b
	}
	return err
}

// settleReleased judges a step that has no recorded answer.
func (p *Player) settleReleased(step *Step, got []byte, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("want an answer, got %w", err)
	case got[offCommand] != commandReply:
		return fmt.Errorf("want a reply, got %s", describe(got))
	case retryable(got), step.Expect == expectAccepted && typedRefusal(got):
		return fmt.Errorf("want success, got %s", describe(got))
	}
	for _, f := range step.Bind {
		b := slice(got, f.Off, f.Len)
		if b == nil {
			return fmt.Errorf("%q lies beyond the answer of %d bytes", f.Name, len(got))
		}
		p.bound[f.Name] = append([]byte{}, b...)
	}
	return nil
}

func outcome(got []byte, err error) string {
	if err != nil {
		return err.Error()
	}
	return describe(got)
}

// allowance is how long a step waits for its answer. Silence is awaited exactly as long as the
// scenario says: patience would only slow it down.
func (p *Player) allowance(step *Step) time.Duration {
	d := answerTime
	if len(step.Send) > offReqOp && step.Send[offReqOp] == opRegister {
		d = loginTime
	}
	if step.Ms > 0 {
		d = time.Duration(step.Ms) * time.Millisecond
	}
	if step.Expect == "silence" && !step.Better {
		return d
	}
	return d * time.Duration(max(1, p.Patience))
}

// request builds the frame of a step from the recorded one.
func (p *Player) request(step *Step) ([]byte, error) {
	frame := append([]byte{}, step.Send...)
	grown := 0 // by how much strings of another length moved what follows; fields ascend
	for _, f := range step.Subst {
		b, ok := p.bound[f.Name]
		if !ok {
			return nil, fmt.Errorf("nothing bound to %q", f.Name)
		}
		at := f.Off + grown
		if f.Form == "str8" {
			old := slice(frame, at, 1)
			if old == nil || slice(frame, at+1, int(old[0])) == nil || len(b) > 255 {
				return nil, fmt.Errorf("no string to replace at %d", f.Off)
			}
			tail := frame[at+1+int(old[0]):]
			longer := append(append([]byte{}, frame[:at]...), byte(len(b)))
			longer = append(append(longer, b...), tail...)
			grown += len(longer) - len(frame)
			frame = longer
			continue
		}
		if slice(frame, at, f.Len) == nil || len(b) < f.Len {
			return nil, fmt.Errorf("%q does not fit at %d", f.Name, f.Off)
		}
		if err := put(frame[at:at+f.Len], b, f.Form); err != nil {
			return nil, err
		}
	}
	if grown != 0 {
		size := binary.LittleEndian.Uint32(frame[offSize:])
		binary.LittleEndian.PutUint32(frame[offSize:], uint32(int(size)+grown))
	}
	if step.Seal {
		binary.LittleEndian.PutUint64(frame[offReqChecksum:], xxh3.Hash(frame[headerSize:]))
		binary.LittleEndian.PutUint64(frame[offReqChecksum+8:], 0)
	}
	return frame, nil
}

// put writes bound bytes over dst, raised or lowered by one when form says so.
func put(dst, b []byte, form string) error {
	copy(dst, b)
	switch form {
	case "":
	case "1":
		for i := range dst {
			if dst[i]++; dst[i] != 0 {
				break
			}
		}
	case "-1":
		for i := range dst {
			if dst[i]--; dst[i] != 0xff {
				break
			}
		}
	default:
		return fmt.Errorf("unknown form %q of a substitution", form)
	}
	return nil
}
