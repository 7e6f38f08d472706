package conformance

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// judged are the headers that must be as listed in every step, absent when they are not.
var judged = []string{
	"content-type", "iggy-view", "iggy-durability", "retry-after", "location", "allow", "connection", "content-disposition",
}

func (p *httpPlayer) judge(want *httpExpectation, got *httpAnswer) error {
	if slices.Contains(want.Also, got.status) && got.status != want.Status {
		return nil
	}
	if want.Framework {
		if got.status == want.Status || class422(got.status) && class422(want.Status) {
			return p.listed(want.Headers, got.header)
		}
		return fmt.Errorf("status %d, want %d", got.status, want.Status)
	}
	if got.status != want.Status {
		return fmt.Errorf("status %d, want %d", got.status, want.Status)
	}
	for _, name := range judged {
		if _, listed := want.Headers[name]; !listed && got.header.Get(name) != "" {
			return fmt.Errorf("header %s: %s, want none", name, got.header.Get(name))
		}
	}
	if err := p.listed(want.Headers, got.header); err != nil {
		return err
	}
	return p.body(want, got)
}

// class422 tells the two statuses of a body that does not fit, which count as one.
func class422(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusUnprocessableEntity
}

// sets are headers whose value is a set.
var sets = []string{"allow", "vary", "access-control-allow-methods", "access-control-allow-headers", "access-control-expose-headers"}

func (p *httpPlayer) listed(want map[string]string, got http.Header) error {
	for name, value := range want {
		have := got.Get(name)
		ok := false
		switch {
		case value == "<absent>":
			ok = len(got.Values(name)) == 0
		case value == "<uint>":
			_, err := strconv.ParseUint(have, 10, 64)
			ok = err == nil
		case strings.HasPrefix(value, "~"):
			ok = regexp.MustCompile("^(?:" + value[1:] + ")$").MatchString(have)
		case name == "content-type":
			ok = mediaType(have) == mediaType(value)
		case slices.Contains(sets, name):
			ok = slices.Equal(asSet(have), asSet(value))
		default:
			ok = have == p.fill(value, 0)
		}
		if !ok {
			return fmt.Errorf("header %s: %q, want %q", name, have, value)
		}
	}
	return nil
}

func mediaType(text string) string {
	kind, _, _ := mime.ParseMediaType(text) // unreadable: "", which no expectation is
	return kind
}

func asSet(list string) []string {
	parts := strings.Split(strings.ToLower(list), ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	slices.Sort(parts)
	return parts
}

func (p *httpPlayer) body(want *httpExpectation, got *httpAnswer) error {
	switch {
	case want.AnyBody:
	case want.Empty:
		if len(got.body) != 0 {
			return errors.New("a body where none is wanted")
		}
	case want.Text != nil:
		if string(got.body) != *want.Text {
			return fmt.Errorf("body %q, want %q", got.body, *want.Text)
		}
	case want.Lines != nil:
		return matchLines(want.Lines, string(got.body))
	case want.Zip != nil:
		return matchArchive(want.Zip, got.body)
	case want.JSON != nil:
		return p.matchJSON(want, got.body)
	}
	return nil
}

func matchLines(want []string, body string) error {
	lines := strings.Split(body, "\n")
	for _, pattern := range want {
		re := regexp.MustCompile("^(?:" + pattern + ")$")
		if !slices.ContainsFunc(lines, re.MatchString) {
			return fmt.Errorf("no line matches %s", pattern)
		}
	}
	return nil
}

func matchArchive(want map[string]string, body []byte) error {
	archive, err := zip.NewReader(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		return err
	}
	found := make(map[string]bool)
	for _, f := range archive.File {
		content, listed := want[f.Name]
		if !listed {
			return fmt.Errorf("archive entry %s is not wanted", f.Name)
		}
		found[f.Name] = true
		if content == "<any>" {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return err
		}
		have, err := io.ReadAll(r)
		if err != nil || string(have) != content {
			return fmt.Errorf("archive entry %s: %q, want %q (%v)", f.Name, have, content, err)
		}
	}
	if len(found) != len(want) {
		return fmt.Errorf("archive has %d of %d entries", len(found), len(want))
	}
	return nil
}

func (p *httpPlayer) matchJSON(want *httpExpectation, body []byte) error {
	expected, err := parseJSON(want.JSON)
	if err != nil {
		return err
	}
	have, err := parseJSON(body)
	if err != nil {
		return err
	}
	if err := p.match(expected, have, "$"); err != nil {
		return err
	}
	if !want.Ordered {
		return nil
	}
	if k1, k2 := keys(want.JSON), keys(body); len(k1) != len(k2) {
		return errors.New("keys in another order")
	} else {
		for i := range k1 {
			if k1[i] != k2[i] && !strings.HasPrefix(k1[i], "${") {
				return fmt.Errorf("key %s where %s is wanted", k2[i], k1[i])
			}
		}
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, body); err != nil || compact.Len() != len(body) {
		return errors.New("white space between the tokens")
	}
	return nil
}

// keys lists the object keys of a JSON text in their order.
func keys(text []byte) (list []string) {
	d := json.NewDecoder(bytes.NewReader(text))
	type level struct{ object, value bool }
	var at []level
	for {
		token, err := d.Token()
		if err != nil {
			return list
		}
		if open, ok := token.(json.Delim); ok && (open == '{' || open == '[') {
			at = append(at, level{object: open == '{'})
			continue
		} else if ok {
			at = at[:len(at)-1]
		} else if n := len(at); n > 0 && at[n-1].object && !at[n-1].value {
			list = append(list, token.(string))
			at[n-1].value = true
			continue
		}
		if n := len(at); n > 0 {
			at[n-1].value = false
		}
	}
}

// match compares an answer with what is expected, masks and variables resolved.
func (p *httpPlayer) match(want, have any, path string) error {
	bad := func() error { return fmt.Errorf("%s is %v, want %v", path, have, want) }
	switch w := want.(type) {
	case map[string]any:
		if list, ok := w["<contains>"]; ok {
			return p.contains(list.([]any), have, path)
		}
		h, ok := have.(map[string]any)
		if !ok || len(h) != len(w) {
			return bad()
		}
		for name, value := range w {
			inside, ok := h[p.fill(name, 0)]
			if !ok {
				return fmt.Errorf("%s has no %s", path, name)
			}
			if err := p.match(value, inside, path+"."+name); err != nil {
				return err
			}
		}
		return nil
	case []any:
		h, ok := have.([]any)
		if !ok || len(h) != len(w) {
			return bad()
		}
		for i := range w {
			if err := p.match(w[i], h[i], fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
		return nil
	case string:
		if !p.matchText(w, have) {
			return bad()
		}
		return nil
	case json.Number:
		h, ok := have.(json.Number)
		if !ok || h != w {
			return bad()
		}
		return nil
	}
	if want != have {
		return bad()
	}
	return nil
}

func (p *httpPlayer) contains(want []any, have any, path string) error {
	list, ok := have.([]any)
	if !ok {
		return fmt.Errorf("%s is no array", path)
	}
	for _, w := range want {
		if !slices.ContainsFunc(list, func(h any) bool { return p.match(w, h, path) == nil }) {
			return fmt.Errorf("%s does not contain %v", path, w)
		}
	}
	return nil
}

// matchText compares with a mask, a variable or plain text.
func (p *httpPlayer) matchText(want string, have any) bool {
	if name, ok := strings.CutPrefix(want, "${"); ok && strings.HasSuffix(name, "}") {
		return have != nil && fmt.Sprint(have) == fmt.Sprint(p.vars[strings.TrimSuffix(name, "}")])
	}
	if !strings.HasPrefix(want, "<") || !strings.HasSuffix(want, ">") {
		text, ok := have.(string)
		return ok && text == p.fill(want, 0)
	}
	mask := strings.Trim(want, "<>")
	if rest, optional := strings.CutSuffix(mask, "?"); optional {
		if have == nil {
			return true
		}
		mask = rest
	}
	return masked(mask, have)
}

var (
	jwtShape    = regexp.MustCompile(`^[\w-]+\.[\w-]+\.[\w-]+$`)
	base64Shape = regexp.MustCompile(`^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$`)
	sizeShape   = regexp.MustCompile(`^\d+(\.\d{1,3})? (B|[KMGTPE]i?B)$`)
)

func masked(mask string, have any) bool {
	text, isText := have.(string)
	number, isNumber := have.(json.Number)
	n, err := strconv.ParseUint(string(number), 10, 64)
	isUint := isNumber && err == nil
	switch mask {
	case "uint":
		return isNumber && regexp.MustCompile(`^\d+$`).MatchString(string(number))
	case "positive":
		return isNumber && regexp.MustCompile(`^\d*[1-9]\d*$`).MatchString(string(number))
	case "int":
		return isNumber && regexp.MustCompile(`^-?\d+$`).MatchString(string(number))
	case "number":
		return isNumber
	case "string":
		return isText && text != ""
	case "text":
		return isText
	case "jwt":
		return isText && jwtShape.MatchString(text)
	case "base64":
		return isText && base64Shape.MatchString(text)
	case "size":
		return isText && sizeShape.MatchString(text)
	case "time":
		return isUint && time.Since(time.UnixMicro(int64(n))).Abs() < 24*time.Hour
	case "unix":
		return isUint && n > 1_600_000_000 && n < 20_000_000_000
	case "any":
		return true
	}
	switch have.(type) {
	case bool:
		return mask == "bool"
	case []any:
		return mask == "array"
	case map[string]any:
		return mask == "object"
	}
	return false
}
