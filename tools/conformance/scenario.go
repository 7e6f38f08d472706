package conformance

import (
	"bufio"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"sort"
)

//go:embed transcripts/client/*.jsonl transcripts/http/*.jsonl transcripts/released-0.11.0/*.jsonl
var transcripts embed.FS

// Scenario is one recorded conversation.
type Scenario struct {
	Name     string            `json:"scenario"`
	Area     string            `json:"area"`
	About    string            `json:"about"`
	Asserts  []int             `json:"asserts"`
	Fresh    bool              `json:"fresh"`
	Env      map[string]string `json:"env"`
	Slow     bool              `json:"slow"`
	Quirk    bool              `json:"quirk"`
	Authored bool              `json:"authored"`
	Cluster  bool              `json:"-"` // needs a cluster whose nodes show each other
	Steps    []Step            `json:"-"`
}

// Step is one line of a scenario after its header.
type Step struct {
	N        int     `json:"n"`
	Note     string  `json:"note"`
	Do       string  `json:"do"`
	Conn     string  `json:"conn"`
	Send     hexText `json:"send"`
	Subst    []Field `json:"subst"`
	Expect   string  `json:"expect"`
	Frame    hexText `json:"frame"`
	Mask     []Field `json:"mask"`
	Loose    []Field `json:"loose"`
	Want     []Field `json:"want"`
	Bind     []Field `json:"bind"`
	AnyOrder []Field `json:"any_order"`
	Check    string  `json:"check"`
	Until    bool    `json:"until"`
	Better   bool    `json:"better"`
	Ms       int     `json:"ms"`
	Seal     bool    `json:"seal"`
}

// hexText is a frame spelled as hex digits and runs.
type hexText []byte

func (h *hexText) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	out, err := decodeHexText(text)
	*h = out
	return err
}

// Field is a part of a frame: [offset, length, name or reason, form], the last two optional.
type Field struct {
	Off, Len int
	Name     string
	Form     string
}

func (f *Field) UnmarshalJSON(b []byte) error {
	var parts []any
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	if len(parts) < 2 || len(parts) > 4 {
		return fmt.Errorf("field %s: 2 to 4 parts", b)
	}
	off, ok1 := parts[0].(float64)
	n, ok2 := parts[1].(float64)
	if !ok1 || !ok2 || off < 0 || n < 0 {
		return fmt.Errorf("field %s: offset and length are numbers", b)
	}
	f.Off, f.Len = int(off), int(n)
	for i, p := range parts[2:] {
		text, ok := p.(string)
		if !ok {
			return fmt.Errorf("field %s: part %d is text", b, i+3)
		}
		if i == 0 {
			f.Name = text
		} else {
			f.Form = text
		}
	}
	return nil
}

// end is the offset behind the field.
func (f Field) end() int { return f.Off + f.Len }

// Load returns the recorded scenarios, those of released clients included, in the order of their
// names.
func Load() ([]*Scenario, error) {
	const dir = "transcripts/client"
	entries, err := fs.ReadDir(transcripts, dir)
	if err != nil {
		return nil, err
	}
	var all []*Scenario
	for _, e := range entries {
		f, err := transcripts.Open(path.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		s, err := parseScenario(bufio.NewScanner(f))
		_ = f.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		all = append(all, s)
	}
	released, err := loadReleased()
	if err != nil {
		return nil, err
	}
	all = append(all, released...)
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all, nil
}

func parseScenario(lines *bufio.Scanner) (*Scenario, error) {
	lines.Buffer(nil, 64<<20)
	s := &Scenario{}
	for n := 0; lines.Scan(); n++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		if n == 0 {
			if err := json.Unmarshal(lines.Bytes(), s); err != nil {
				return nil, fmt.Errorf("header: %w", err)
			}
			continue
		}
		var step Step
		if err := json.Unmarshal(lines.Bytes(), &step); err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
		for _, f := range step.Mask {
			if f.end() > len(step.Frame) && f.Form != "rest" {
				return nil, fmt.Errorf("line %d: mask beyond the frame", n+1)
			}
		}
		s.Steps = append(s.Steps, step)
	}
	if s.Name == "" || len(s.Steps) == 0 {
		return nil, fmt.Errorf("no header or no steps")
	}
	return s, lines.Err()
}
