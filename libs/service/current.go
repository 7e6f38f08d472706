package service

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// Bound holds the really bound host:port of each listener; empty is not served. Ops is filled in by
// Runtime.Ready.
type Bound struct{ TCP, QUIC, HTTP, WebSocket, Replica, Service, Ops string }

// currentPath is the file tools read to find a running process.
func (c *Config) currentPath() string {
	runtime := c.System.Runtime.Path
	if !filepath.IsAbs(runtime) {
		runtime = filepath.Join(c.System.Path, runtime)
	}
	return filepath.Join(runtime, "current_config.toml")
}

// WriteCurrent writes the configuration in force, with the bound addresses and without secrets, to
// runtime/current_config.toml below the data directory, in one step.
func (c *Config) WriteCurrent(b Bound) error {
	now := *c
	for _, listener := range []struct {
		address string
		to      *string
		enabled *bool
	}{
		{b.TCP, &now.TCP.Address, &now.TCP.Enabled},
		{b.QUIC, &now.QUIC.Address, &now.QUIC.Enabled},
		{b.HTTP, &now.HTTP.Address, &now.HTTP.Enabled},
		{b.WebSocket, &now.WebSocket.Address, &now.WebSocket.Enabled},
	} {
		*listener.enabled = listener.address != ""
		if listener.address != "" {
			*listener.to = listener.address
		}
	}
	for _, listener := range []struct {
		address string
		to      *string
	}{{b.Replica, &now.Replica.Address}, {b.Service, &now.Service.Address}, {b.Ops, &now.Ops.Address}} {
		if listener.address != "" {
			*listener.to = listener.address
		}
	}
	text, err := toml.Marshal(tree(reflect.ValueOf(&now).Elem()))
	if err != nil {
		return err
	}
	return writeDurably(c.currentPath(), text, 0o644)
}

// Current is the text that WriteCurrent wrote, nil before it did.
func (c *Config) Current() []byte {
	text, err := os.ReadFile(c.currentPath())
	if err != nil {
		return nil
	}
	return text
}

// RemoveCurrent removes what an earlier process left, so that nobody takes its addresses for this
// one's. Call it with the data directory locked.
func (c *Config) RemoveCurrent() error {
	if err := os.Remove(c.currentPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// tree turns a part of Config into nested maps for the TOML encoder, without secrets.
func tree(v reflect.Value) map[string]any {
	top := map[string]any{}
	put := func(key string, value any) {
		at := top
		for {
			head, rest, deeper := strings.Cut(key, ".")
			if !deeper {
				at[head] = value
				return
			}
			next, ok := at[head].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[head] = next
			}
			at, key = next, rest
		}
	}
	walk(v, "", "", func(s setting) {
		switch value := s.value.Interface().(type) {
		case Secret:
		case Size, time.Duration:
			put(s.key, s.text())
		default:
			put(s.key, value)
		}
	}, func(t table) {
		items := make([]map[string]any, t.slice.Len())
		for i := range items {
			items[i] = tree(t.slice.Index(i))
		}
		put(t.key, items)
	})
	return top
}
