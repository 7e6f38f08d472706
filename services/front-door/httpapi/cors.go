package httpapi

import (
	"errors"
	"net/http"
	"slices"
	"strings"
)

// CORS are the cross-origin headers.
type CORS struct {
	Enabled             bool
	AllowedMethods      []string
	AllowedOrigins      []string // "*" alone: any
	AllowedHeaders      []string
	ExposedHeaders      []string
	AllowCredentials    bool
	AllowPrivateNetwork bool
}

// trim drops blank entries and refuses what browsers would.
func (c *CORS) trim() error {
	for _, list := range []*[]string{&c.AllowedMethods, &c.AllowedOrigins, &c.AllowedHeaders, &c.ExposedHeaders} {
		kept := make([]string, 0, len(*list))
		for _, item := range *list {
			if item = strings.TrimSpace(item); item != "" {
				kept = append(kept, item)
			}
		}
		*list = kept
	}
	if at := slices.Index(c.AllowedOrigins, "*"); at > 0 {
		return errors.New("http.cors.allowed_origins: * must be the first entry")
	}
	wild := c.anyOrigin() || slices.Contains(c.AllowedHeaders, "*") || slices.Contains(c.AllowedMethods, "*") || slices.Contains(c.ExposedHeaders, "*")
	if c.AllowCredentials && wild {
		return errors.New("http.cors.allow_credentials does not go with *")
	}
	return nil
}

func (c *CORS) anyOrigin() bool { return len(c.AllowedOrigins) > 0 && c.AllowedOrigins[0] == "*" }

// apply sets the headers of an answer; a preflight gets those of one.
func (c *CORS) apply(r *http.Request, h http.Header, preflight bool) {
	if c.anyOrigin() {
		h.Set("Access-Control-Allow-Origin", "*")
	} else {
		h.Add("Vary", "origin")
		if origin := r.Header.Get("Origin"); origin != "" && slices.Contains(c.AllowedOrigins, origin) {
			h.Set("Access-Control-Allow-Origin", origin)
		}
	}
	if c.AllowCredentials {
		h.Set("Access-Control-Allow-Credentials", "true")
	}
	if !preflight {
		set(h, "Access-Control-Expose-Headers", c.ExposedHeaders)
		return
	}
	set(h, "Access-Control-Allow-Methods", c.AllowedMethods)
	set(h, "Access-Control-Allow-Headers", c.AllowedHeaders)
	if c.AllowPrivateNetwork && r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
}

func set(h http.Header, name string, list []string) {
	if len(list) > 0 {
		h.Set(name, strings.Join(list, ","))
	}
}
