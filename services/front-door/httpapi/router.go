package httpapi

import (
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"
)

// handler serves one route. What it returns as an error becomes the answer.
type handler func(*call) error

// route is what lives at one path.
type route struct {
	segments []string // "{...}" stands for any one segment
	methods  []string // in the order of Allow
	handlers map[string]handler
	public   bool // served without a credential
	unmarked bool // answered without the view header
}

// router finds the route of a path. Paths are matched as sent: nothing is cleaned or redirected, and
// a trailing slash makes another path.
type router struct {
	routes map[int][]*route // by number of segments; those with more literal text first
}

func newRouter() *router { return &router{routes: make(map[int][]*route)} }

// at adds a route for each method to the path.
func (t *router) at(path string, handlers map[string]handler) *route {
	r := &route{segments: split(path), handlers: handlers}
	if h := handlers[http.MethodGet]; h != nil {
		handlers[http.MethodHead] = h
	}
	for _, m := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete} {
		if handlers[m] != nil {
			r.methods = append(r.methods, m)
		}
	}
	n := len(r.segments)
	t.routes[n] = append(t.routes[n], r)
	return r
}

func split(path string) []string { return strings.Split(strings.TrimPrefix(path, "/"), "/") }

// find returns the route of an escaped path and the values of its variable segments, decoded. ok is
// false when a segment cannot be decoded. Routes added first win.
func (t *router) find(escaped string) (found *route, params []string, ok bool) {
	if !strings.HasPrefix(escaped, "/") {
		return nil, nil, true
	}
	segments := split(escaped)
	if last := segments[len(segments)-1]; last == "" {
		return nil, nil, true
	}
	for _, r := range t.routes[len(segments)] {
		if r.matches(segments) {
			params, ok = r.params(segments)
			return r, params, ok
		}
	}
	return nil, nil, true
}

func (r *route) matches(segments []string) bool {
	for i, s := range r.segments {
		if s[0] != '{' && s != segments[i] {
			return false
		}
	}
	return true
}

func (r *route) params(segments []string) (params []string, ok bool) {
	for i, s := range r.segments {
		if s[0] != '{' {
			continue
		}
		value, err := url.PathUnescape(segments[i])
		if err != nil || !utf8.ValidString(value) {
			return nil, false
		}
		params = append(params, value)
	}
	return params, true
}
