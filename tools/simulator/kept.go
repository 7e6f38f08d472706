package simulator

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ParseOptions reads what Options.String writes; lines that start with # say why the run is kept.
func ParseOptions(text string) (o Options, err error) {
	var words []string
	for line := range strings.SplitSeq(text, "\n") {
		if !strings.HasPrefix(line, "#") {
			words = append(words, strings.Fields(line)...)
		}
	}
	if len(words)%2 != 0 || len(words) == 0 || words[0] != "replay" {
		return o, fmt.Errorf("not a run: %q", text)
	}
	if o.Seed, err = strconv.ParseUint(words[1], 10, 64); err != nil {
		return o, err
	}
	for i := 2; i < len(words) && err == nil; i += 2 {
		switch value := words[i+1]; words[i] {
		case "--profile":
			o.Profile = Profile(value)
		case "--nodes":
			o.Nodes, err = strconv.Atoi(value)
		case "--length":
			o.Length, err = strconv.ParseUint(value, 10, 64)
		case "--without":
			o.Without, err = ParseFaults(value)
		default:
			err = fmt.Errorf("unknown flag %s", words[i])
		}
	}
	return o, err
}

// ParseFaults reads names with commas.
func ParseFaults(names string) (faults []Fault, err error) {
	for name := range strings.SplitSeq(names, ",") {
		if name == "" {
			continue
		}
		f, err := ParseFault(name)
		if err != nil {
			return nil, err
		}
		faults = append(faults, f)
	}
	return faults, nil
}

// Keep writes a failed run to a file in dir, for the test of kept seeds.
func Keep(dir string, r *Result) error {
	name := fmt.Sprintf("%s-%d-%s.txt", r.Options.Profile, r.Options.Seed, strings.ToLower(r.Violation.Rule))
	text := fmt.Sprintf("# %v\n%v\n", strings.ReplaceAll(r.Violation.String(), "\n", " "), r.Options)
	return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)
}
