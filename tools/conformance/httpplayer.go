package conformance

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// httpPlayer plays one HTTP scenario.
type httpPlayer struct {
	base     string // scheme://host:port
	patience int
	roster   int // nodes that show each other, 0: one, as recorded
	client   *http.Client
	vars     map[string]any // text, or json.Number
}

const (
	httpAnswerTime = 30 * time.Second
	httpRetryTime  = 5 * time.Second // a request that got 503 with Retry-After, or 504, goes out again
)

func newHTTPPlayer(base string, patience int) *httpPlayer {
	return &httpPlayer{
		base: base, patience: max(1, patience), vars: make(map[string]any),
		client: &http.Client{
			Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64},
			Timeout:       httpAnswerTime,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// play returns the first *Failure.
func (p *httpPlayer) play(s *HTTPScenario) error {
	defer p.client.CloseIdleConnections()
	for i := range s.Steps {
		if err := p.step(&s.Steps[i]); err != nil {
			return &Failure{Step: s.Steps[i].N, Note: s.Steps[i].Note + " " + s.Steps[i].Request.Method + " " + s.Steps[i].Request.Path, Err: err}
		}
	}
	return nil
}

func (p *httpPlayer) step(s *HTTPStep) error {
	time.Sleep(time.Duration(s.WaitMs) * time.Millisecond)
	for _, m := range s.Mint {
		token, err := m.sign(time.Now())
		if err != nil {
			return err
		}
		p.vars[m.Name] = token
	}
	if s.Parallel > 1 {
		return p.parallel(s)
	}
	for i := range max(1, s.Times) {
		if err := p.once(s, i, true); err != nil {
			return err
		}
	}
	return nil
}

func (p *httpPlayer) parallel(s *HTTPStep) error {
	errs := make([]error, s.Parallel)
	var wg sync.WaitGroup
	for i := range s.Parallel {
		wg.Go(func() { errs[i] = p.once(s, i, false) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// once sends the i-th request of a step until its answer is right or its time is up.
func (p *httpPlayer) once(s *HTTPStep, i int, bind bool) error {
	patience := time.Duration(s.EventuallyMs*p.patience) * time.Millisecond
	for started := time.Now(); ; time.Sleep(retryPause) {
		sent := time.Now()
		got, err := p.exchange(&s.Request, i)
		if err != nil {
			return err
		}
		if got.unavailable() && s.Response.Status != got.status && time.Since(started) < httpRetryTime {
			continue
		}
		if limit := time.Duration(s.WithinMs*p.patience) * time.Millisecond; limit > 0 && time.Since(sent) > limit {
			return fmt.Errorf("answered after %v, allowed %v", time.Since(sent).Round(time.Millisecond), limit)
		}
		if p.roster > 0 && s.asksRoster() {
			err = judgeHTTPRoster(got, p.roster)
		} else {
			err = p.judge(&s.Response, got)
		}
		switch {
		case err != nil && time.Since(started) < patience:
			continue
		case err != nil:
			return fmt.Errorf("%w\n got %d %.600s", err, got.status, got.body)
		case bind:
			return p.bind(s.Bind, got.body)
		}
		return nil
	}
}

// httpAnswer is what came back.
type httpAnswer struct {
	status int
	header http.Header
	body   []byte
}

func (a *httpAnswer) unavailable() bool {
	return a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") != "" || a.status == http.StatusGatewayTimeout
}

func (p *httpPlayer) exchange(q *httpRequest, i int) (*httpAnswer, error) {
	var body io.Reader
	contentType := ""
	switch {
	case q.JSON != nil:
		body, contentType = strings.NewReader(p.fill(string(q.JSON), i)), "application/json"
	case q.Text != nil:
		body = strings.NewReader(p.fill(*q.Text, i))
	case q.Fill != nil:
		body, contentType = strings.NewReader(q.Fill.Prefix+strings.Repeat(q.Fill.Char, q.Fill.Count)+q.Fill.Suffix), "application/json"
	}
	r, err := http.NewRequest(q.Method, p.base, body)
	if err != nil {
		return nil, err
	}
	r.URL = &url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host, Opaque: p.fill(q.Path, i)} // sent as it is
	r.Header.Set("User-Agent", "")
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	for name, value := range q.Headers {
		if value == "" && strings.EqualFold(name, "content-type") {
			r.Header.Del(name)
			continue
		}
		r.Header.Set(name, p.fill(value, i))
	}
	resp, err := p.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // read to its end or failed already
	got := &httpAnswer{status: resp.StatusCode, header: resp.Header}
	if resp.Close {
		got.header.Set("Connection", "close")
	}
	got.body, err = io.ReadAll(resp.Body)
	return got, err
}

// fill replaces ${name} by what is bound, and ${i} by i.
func (p *httpPlayer) fill(text string, i int) string {
	if !strings.Contains(text, "${") {
		return text
	}
	text = strings.ReplaceAll(text, "${i}", strconv.Itoa(i))
	for name, value := range p.vars {
		text = strings.ReplaceAll(text, "${"+name+"}", fmt.Sprint(value))
	}
	return text
}

// bind takes variables from a JSON answer: $.a.b[0].c
func (p *httpPlayer) bind(from map[string]string, body []byte) error {
	if len(from) == 0 {
		return nil
	}
	root, err := parseJSON(body)
	if err != nil {
		return err
	}
	for name, path := range from {
		at := root
		for _, part := range strings.FieldsFunc(strings.TrimPrefix(path, "$"), func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
			switch v := at.(type) {
			case map[string]any:
				at = v[part]
			case []any:
				n, err := strconv.Atoi(part)
				if err != nil || n >= len(v) {
					return fmt.Errorf("bind %s: no %s", name, path)
				}
				at = v[n]
			default:
				return fmt.Errorf("bind %s: no %s", name, path)
			}
		}
		if at == nil {
			return fmt.Errorf("bind %s: no %s", name, path)
		}
		p.vars[name] = at
	}
	return nil
}

func parseJSON(b []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// sign makes the token. A claim "now", "now+60" or "now-5" is unix seconds.
func (m *mintedToken) sign(now time.Time) (string, error) {
	claims := make(map[string]any, len(m.Claims))
	for name, value := range m.Claims {
		claims[name] = value
		if text, ok := value.(string); ok && strings.HasPrefix(text, "now") {
			offset := 0
			if rest := text[3:]; rest != "" {
				n, err := strconv.Atoi(rest)
				if err != nil {
					continue
				}
				offset = n
			}
			claims[name] = now.Unix() + int64(offset)
		}
	}
	head, err := json.Marshal(map[string]string{"typ": "JWT", "alg": m.Alg})
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString(head) + "." + base64.RawURLEncoding.EncodeToString(body)
	var sum []byte
	if h := map[string]func() hash.Hash{"HS256": sha256.New, "HS384": sha512.New384, "HS512": sha512.New}[m.Alg]; h != nil {
		mac := hmac.New(h, []byte(m.Secret))
		mac.Write([]byte(text))
		sum = mac.Sum(nil)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(sum), nil
}
