package service

import (
	"errors"
	"flag"
	"fmt"
	"io"
)

// ErrHelp and ErrVersion are returned by Load when the flags ask for the text instead of a start.
var (
	ErrHelp    = errors.New("help asked for")
	ErrVersion = errors.New("version asked for")
)

// flagsHelp is the part of --help that all programs share.
const flagsHelp = `      --config FILE                    TOML configuration file; then the environment, then flags
      --replica-id N                   this node's id in the cluster's roster
  -f, --fresh                          wipe the data directory before the start
      --accept-metadata-loss           go on with what damaged metadata still holds, see the operations page
      --with-default-root-credentials  for development: root is iggy / iggy unless the environment names it
      --version                        print the version
  -h, --help                           print this text
`

type flags struct {
	config      string
	replicaID   string
	fresh       bool
	defaultRoot bool
	acceptLoss  bool
}

func parseFlags(args []string) (flags, error) {
	var f flags
	var help, version bool
	set := flag.NewFlagSet("", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&f.config, "config", "", "")
	set.StringVar(&f.replicaID, "replica-id", "", "")
	set.BoolVar(&f.fresh, "fresh", false, "")
	set.BoolVar(&f.fresh, "f", false, "")
	set.BoolVar(&f.defaultRoot, "with-default-root-credentials", false, "")
	set.BoolVar(&f.acceptLoss, "accept-metadata-loss", false, "")
	set.BoolVar(&help, "help", false, "")
	set.BoolVar(&help, "h", false, "")
	set.BoolVar(&version, "version", false, "")
	set.BoolVar(&version, "V", false, "")
	err := set.Parse(args)
	switch {
	case help:
		return f, ErrHelp
	case version:
		return f, ErrVersion
	case err != nil:
		return f, fmt.Errorf("flags: %w; --help lists them", err)
	case set.NArg() > 0:
		return f, fmt.Errorf("flags: %q is no flag; --help lists them", set.Arg(0))
	}
	return f, nil
}
