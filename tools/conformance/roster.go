package conformance

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// Rosters were recorded on a server of one node. A cluster whose nodes show each other is judged by what
// clients need of a roster: all nodes, each with its own addresses, and one of them the leader.

const (
	codeRoster = 12
	rosterPath = "/cluster/metadata"
)

// rosterNode is a node as a roster shows it.
type rosterNode struct {
	ports          [4]uint16
	address        string
	leads, healthy bool
}

// asksRoster reports whether a step asks for the roster and was answered with one.
func (s *Step) asksRoster() bool {
	return len(s.Send) >= headerSize && s.Send[offReqOp] == opNonReplicated && binary.LittleEndian.Uint32(s.Send[offReqCode:]) == codeRoster &&
		len(s.Frame) > headerSize && refusal(s.Frame) == 0
}

// judgeNodes reports what is wrong with a roster that should show this many nodes.
func judgeNodes(all []rosterNode, want int) error {
	if len(all) != want {
		return fmt.Errorf("a roster of %d nodes, want %d", len(all), want)
	}
	leaders, seen := 0, map[string]bool{}
	for _, n := range all {
		for _, port := range n.ports {
			at := fmt.Sprint(n.address, " ", port)
			if port == 0 || seen[at] {
				return fmt.Errorf("%s is no address of its own", at)
			}
			seen[at] = true
		}
		if !n.healthy {
			return fmt.Errorf("%s is not healthy", n.address)
		}
		if n.leads {
			leaders++
		}
	}
	if leaders != 1 {
		return fmt.Errorf("a roster with %d leaders", leaders)
	}
	return nil
}

// judgeRoster judges the answer to a step that asks for the roster of a cluster.
func judgeRoster(step *Step, got []byte, want int) error {
	if got[offCommand] != commandReply {
		return fmt.Errorf("%s, want a roster", describe(got))
	}
	if err := judgeHeader(step.Frame, got); err != nil {
		return err
	}
	all, err := rosterNodes(got[headerSize:])
	if err != nil {
		return err
	}
	return judgeNodes(all, want)
}

var errRoster = errors.New("the roster is cut short")

// rosterNodes reads name:str32 count:u32 {name:str32 ip:str32 port:u16 × 4 role:u8 status:u8} × count.
func rosterNodes(b []byte) (all []rosterNode, err error) {
	text := func() (s string) {
		if len(b) < 4 || len(b)-4 < int(binary.LittleEndian.Uint32(b)) {
			err, b = errRoster, nil
			return ""
		}
		n := 4 + int(binary.LittleEndian.Uint32(b))
		s, b = string(b[4:n]), b[n:]
		return s
	}
	text()
	if len(b) < 4 {
		return nil, errRoster
	}
	count := binary.LittleEndian.Uint32(b)
	b = b[4:]
	for range count {
		text()
		n := rosterNode{address: text()}
		if len(b) < 10 {
			return nil, errRoster
		}
		for i := range n.ports {
			n.ports[i] = binary.LittleEndian.Uint16(b[2*i:])
		}
		n.leads, n.healthy, b = b[8] == 0, b[9] == 0, b[10:]
		all = append(all, n)
	}
	if len(b) > 0 {
		return nil, fmt.Errorf("%d bytes behind the roster", len(b))
	}
	return all, err
}

// asksRoster reports whether a step asks for the roster and was answered with one.
func (s *HTTPStep) asksRoster() bool {
	return s.Request.Method == http.MethodGet && s.Request.Path == rosterPath && s.Response.Status == http.StatusOK
}

// judgeHTTPRoster judges the answer to a step that asks for the roster of a cluster.
func judgeHTTPRoster(got *httpAnswer, want int) error {
	if got.status != http.StatusOK {
		return fmt.Errorf("status %d, want a roster", got.status)
	}
	var body struct {
		Nodes []struct {
			IP, Role, Status string
			Endpoints        struct{ TCP, QUIC, HTTP, WebSocket uint16 }
		}
	}
	if err := json.Unmarshal(got.body, &body); err != nil {
		return err
	}
	all := make([]rosterNode, len(body.Nodes))
	for i, n := range body.Nodes {
		e := n.Endpoints
		all[i] = rosterNode{[4]uint16{e.TCP, e.QUIC, e.HTTP, e.WebSocket}, n.IP, n.Role == "leader", n.Status == "healthy"}
	}
	return judgeNodes(all, want)
}
