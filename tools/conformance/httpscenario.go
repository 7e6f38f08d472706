package conformance

import (
	"bufio"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
)

//go:embed transcripts/http/*.jsonl
var httpTranscripts embed.FS

// HTTPScenario is one recorded conversation over HTTP (transcripts/HTTP.md).
type HTTPScenario struct {
	Name    string     `json:"scenario"`
	Profile string     `json:"profile"`
	About   string     `json:"about"`
	Steps   []HTTPStep `json:"-"`
}

// HTTPStep is one request and what must come back.
type HTTPStep struct {
	N            int               `json:"step"`
	Note         string            `json:"note"`
	WaitMs       int               `json:"wait_ms"`
	Mint         []mintedToken     `json:"mint"`
	Times        int               `json:"times"`
	Parallel     int               `json:"parallel"`
	EventuallyMs int               `json:"eventually_ms"`
	WithinMs     int               `json:"within_ms"`
	Request      httpRequest       `json:"request"`
	Response     httpExpectation   `json:"response"`
	Bind         map[string]string `json:"bind"`
}

// mintedToken is a bearer token the client signs itself.
type mintedToken struct {
	Name   string         `json:"name"`
	Alg    string         `json:"alg"`
	Secret string         `json:"secret"`
	Claims map[string]any `json:"claims"`
}

type httpRequest struct {
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers"`
	JSON    json.RawMessage   `json:"json"`
	Text    *string           `json:"text"`
	Fill    *struct {
		Prefix string `json:"prefix"`
		Char   string `json:"char"`
		Count  int    `json:"count"`
		Suffix string `json:"suffix"`
	} `json:"fill"`
}

type httpExpectation struct {
	Status    int               `json:"status"`
	Also      []int             `json:"also"`
	Headers   map[string]string `json:"headers"`
	Empty     bool              `json:"empty"`
	JSON      json.RawMessage   `json:"json"`
	Ordered   bool              `json:"ordered"`
	Text      *string           `json:"text"`
	Lines     []string          `json:"lines"`
	Zip       map[string]string `json:"zip"`
	Framework bool              `json:"framework"`
	AnyBody   bool              `json:"any_body"`
}

// profiles are the server settings scenarios were recorded with.
var profiles = map[string]map[string]string{
	"default": nil,
	"jwt": {
		"IGGY_HTTP_JWT_ENCODING_SECRET": "lab-signing-secret-0123456789abcdef", "IGGY_HTTP_JWT_DECODING_SECRET": "lab-signing-secret-0123456789abcdef",
		"IGGY_HTTP_JWT_ACCESS_TOKEN_EXPIRY": "3 s", "IGGY_HTTP_JWT_CLOCK_SKEW": "2 s",
	},
	"small": {
		"IGGY_HTTP_CORS_ENABLED": "false", "IGGY_HTTP_METRICS_ENABLED": "false", "IGGY_HTTP_MAX_REQUEST_SIZE": "4 KB",
		"IGGY_PERSONAL_ACCESS_TOKEN_MAX_TOKENS_PER_USER": "3",
	},
}

// LoadHTTP returns the recorded HTTP scenarios in the order of their names.
func LoadHTTP() ([]*HTTPScenario, error) {
	const dir = "transcripts/http"
	entries, err := fs.ReadDir(httpTranscripts, dir)
	if err != nil {
		return nil, err
	}
	var all []*HTTPScenario
	for _, e := range entries {
		f, err := httpTranscripts.Open(path.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		s, err := parseHTTPScenario(bufio.NewScanner(f))
		_ = f.Close() // embedded: nothing was written
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		all = append(all, s)
	}
	return all, nil
}

func parseHTTPScenario(lines *bufio.Scanner) (*HTTPScenario, error) {
	lines.Buffer(nil, 16<<20)
	s := &HTTPScenario{}
	for n := 0; lines.Scan(); n++ {
		var err error
		if n == 0 {
			err = json.Unmarshal(lines.Bytes(), s)
		} else {
			var step HTTPStep
			err = json.Unmarshal(lines.Bytes(), &step)
			s.Steps = append(s.Steps, step)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
	}
	if _, known := profiles[s.Profile]; s.Name == "" || len(s.Steps) == 0 || !known {
		return nil, fmt.Errorf("no head, no steps or an unknown profile")
	}
	return s, lines.Err()
}
