package flagfile

import (
	"errors"
	"fmt"
	"os"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// ErrUsage marks a file that cannot be used: exit code 2.
var ErrUsage = errors.New("bad configuration")

// Add gives root and its commands the flag.
func Add(root *cobra.Command) {
	path := root.PersistentFlags().String("config", "", "TOML file with values for flags")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if *path == "" {
			return nil
		}
		text, err := os.ReadFile(*path)
		if err != nil {
			return errors.Join(ErrUsage, err)
		}
		return apply(cmd.Flags(), *path, text)
	}
}

func apply(flags *pflag.FlagSet, path string, text []byte) error {
	var values map[string]any
	if err := toml.Unmarshal(text, &values); err != nil {
		return fmt.Errorf("%w: %s: %v", ErrUsage, path, err)
	}
	for key, value := range values {
		f := flags.Lookup(key)
		switch {
		case f == nil || key == "config":
			return fmt.Errorf("%w: %s: %q is no flag of this command", ErrUsage, path, key)
		case f.Changed:
			continue
		}
		if err := flags.Set(key, fmt.Sprint(value)); err != nil {
			return fmt.Errorf("%w: %s: %s = %v: %v", ErrUsage, path, key, value, err)
		}
	}
	return nil
}
