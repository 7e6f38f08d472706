package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/cobra"
)

// contexts is the file of named servers. It holds secrets and is readable by its owner only.
type contexts struct {
	Current  string                   `toml:"current,omitempty"`
	Contexts map[string]serverContext `toml:"contexts,omitempty"`
}

// serverContext is one named server.
type serverContext struct {
	Address  string `toml:"address,omitempty"`
	Username string `toml:"username,omitempty"`
	Password string `toml:"password,omitempty"`
	Token    string `toml:"token,omitempty"`
	TLS      bool   `toml:"tls,omitempty"`
	CA       string `toml:"tls_ca,omitempty"`
	Insecure bool   `toml:"tls_insecure,omitempty"`
}

// contextsPath follows the base directory rules of freedesktop.org.
func contextsPath(getenv func(string) string) string {
	base := getenv("XDG_CONFIG_HOME")
	if base == "" {
		base = filepath.Join(getenv("HOME"), ".config")
	}
	return filepath.Join(base, "whippet", "contexts.toml")
}

func (a *app) loadContexts() (contexts, error) {
	all := contexts{Contexts: map[string]serverContext{}}
	text, err := os.ReadFile(a.Contexts)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return all, usageError{err}
	}
	if err := toml.Unmarshal(text, &all); err != nil {
		return all, usageError{fmt.Errorf("%s: %w", a.Contexts, err)}
	}
	return all, nil
}

func (a *app) saveContexts(all contexts) error {
	text, err := toml.Marshal(all)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(a.Contexts), 0o700); err != nil {
		return err
	}
	beside := a.Contexts + ".new"
	if err := os.WriteFile(beside, text, 0o600); err != nil {
		return err
	}
	return os.Rename(beside, a.Contexts)
}

// activeContext is the one named by --context, else the current one, else an empty one.
func (a *app) activeContext() (serverContext, error) {
	all, err := a.loadContexts()
	if err != nil {
		return serverContext{}, err
	}
	name := a.context
	if name == "" {
		name = a.Getenv("WHIPPET_CONTEXT")
	}
	if name == "" {
		return all.Contexts[all.Current], nil
	}
	c, ok := all.Contexts[name]
	if !ok {
		return c, usageError{fmt.Errorf("no context %q in %s", name, a.Contexts)}
	}
	return c, nil
}

func (a *app) contextCommands() *cobra.Command {
	edit := func(use, short string, change func(all *contexts, name string) error) *cobra.Command {
		return &cobra.Command{
			Use: use, Short: short, Args: usage(cobra.ExactArgs(1)),
			RunE: func(_ *cobra.Command, args []string) error {
				all, err := a.loadContexts()
				if err != nil {
					return err
				}
				if err := change(&all, args[0]); err != nil {
					return err
				}
				return a.saveContexts(all)
			},
		}
	}
	known := func(all *contexts, name string) error {
		if _, ok := all.Contexts[name]; !ok {
			return usageError{fmt.Errorf("no context %q", name)}
		}
		return nil
	}
	return family("context", "Named servers with credentials",
		&cobra.Command{
			Use: "list", Short: "List the contexts", Args: usage(cobra.NoArgs),
			RunE: func(*cobra.Command, []string) error {
				all, err := a.loadContexts()
				if err != nil {
					return err
				}
				return a.print(all.list())
			},
		},
		edit("set NAME", "Make or replace a context from --address, --username, --password, --token and the TLS flags",
			func(all *contexts, name string) error {
				all.Contexts[name] = serverContext{a.address, a.username, a.password, a.token, a.tls, a.ca, a.insecure}
				if all.Current == "" {
					all.Current = name
				}
				return nil
			}),
		edit("use NAME", "Make a context the current one", func(all *contexts, name string) error {
			all.Current = name
			return known(all, name)
		}),
		edit("delete NAME", "Forget a context", func(all *contexts, name string) error {
			if err := known(all, name); err != nil {
				return err
			}
			delete(all.Contexts, name)
			if all.Current == name {
				all.Current = ""
			}
			return nil
		}),
	)
}

// list shows the contexts without their secrets.
func (c contexts) list() list {
	var names []string
	for name := range c.Contexts {
		names = append(names, name)
	}
	sort.Strings(names)
	var out list
	for _, name := range names {
		s := c.Contexts[name]
		login := "none"
		switch {
		case s.Token != "":
			login = "token"
		case s.Password != "":
			login = "password"
		}
		out = append(out, record{
			{"name", name}, {"current", name == c.Current}, {"address", s.Address}, {"username", s.Username},
			{"login", login}, {"tls", s.TLS || s.Insecure || s.CA != ""},
		})
	}
	return out
}
