package service

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// indexes finds the index segments of a key of a list of tables.
var indexes = regexp.MustCompile(`\.\d+\b`)

// outside names variables that are read elsewhere or have no key. The text says what is done with
// those that have no effect here.
var outside = map[string]string{
	"IGGY_CONFIG_PATH":            "",
	"IGGY_ENV_PATH":               "",
	"IGGY_DISPLAY_CONFIG":         "",
	"IGGY_CI_BUILD":               "",
	"IGGY_SHARD_RUNTIME_CAPACITY": "has no effect: there are no shards",
	"IGGY_SHARD_EVENT_INTERVAL":   "has no effect: there are no shards",

	// Variables of the command whippet, which people set in the same terminal.
	"WHIPPET_ADDRESS": "", "WHIPPET_USERNAME": "", "WHIPPET_PASSWORD": "", "WHIPPET_TOKEN": "", "WHIPPET_TLS_CA": "", "WHIPPET_CONTEXT": "",
}

// environment returns the variables of interest. Those of the file IGGY_ENV_PATH names, else of
// .env in the working directory, fill in what the process environment leaves out. Empty values
// count as absent.
func environment(environ []string) (map[string]string, error) {
	env := map[string]string{}
	keep := func(line string) {
		name, value, _ := strings.Cut(line, "=")
		ours := strings.HasPrefix(name, "IGGY_") || strings.HasPrefix(name, "WHIPPET_") || name == "RUST_LOG"
		if ours && value != "" && env[name] == "" {
			env[name] = value
		}
	}
	for _, line := range environ {
		keep(line)
	}
	path, named := env["IGGY_ENV_PATH"]
	if !named {
		path = ".env"
	}
	text, err := os.ReadFile(path)
	switch {
	case err == nil:
	case !named && errors.Is(err, fs.ErrNotExist):
		return env, nil
	default:
		return nil, fmt.Errorf("environment file: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "export "))
		name, value, ok := strings.Cut(line, "=")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		keep(strings.TrimSpace(name) + "=" + strings.Trim(strings.TrimSpace(value), `"'`))
	}
	return env, nil
}

// readEnvironment adds the variables to the raw values and warns of names it does not know.
func (l *loader) readEnvironment(env map[string]string) {
	names := l.variables()
	replaced := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		value := env[name]
		v, index, found := names.find(name)
		if text, known := outside[name]; known || !found {
			if !known && name != "RUST_LOG" {
				text = "unknown variable; the nearest is " + names.nearest(name)
			}
			if text != "" {
				l.warnings = append(l.warnings, Warning{name, text})
			}
			continue
		}
		source := "environment " + name
		if v.file {
			text, err := os.ReadFile(value)
			if err != nil {
				l.errs = append(l.errs, &ConfigError{v.key, value, source, "the file cannot be read", "the path of a readable file"})
				continue
			}
			value = strings.TrimRight(string(text), "\r\n")
		}
		key := indexed(v.key, index)
		l.replaceList(v.key, replaced)
		if old, twice := l.raw[key]; twice && strings.HasPrefix(old.source, "environment ") && old.value != value {
			l.errs = append(l.errs, &ConfigError{key, redacted, source, "differs from " + old.source + ", which means the same setting", "one of the two"})
			continue
		}
		l.raw[key] = raw{value, source}
	}
	l.rustLog(env["RUST_LOG"])
}

// replaceList drops what the file said of a list when the environment says anything of it.
func (l *loader) replaceList(key string, replaced map[string]bool) {
	list, _, inList := strings.Cut(key, ".<i>")
	if !inList || replaced[list] {
		return
	}
	replaced[list] = true
	maps.DeleteFunc(l.raw, func(k string, _ raw) bool { return strings.HasPrefix(k, list+".") })
}

// rustLog takes the level of the directive without a target, as users of the reference set it.
func (l *loader) rustLog(directives string) {
	const key = "system.logging.level"
	if l.raw[key].source == "environment WHIPPET_LOG_LEVEL" {
		return
	}
	for directive := range strings.SplitSeq(directives, ",") {
		directive = strings.ToLower(strings.TrimSpace(directive))
		if slices.Contains([]string{"trace", "debug", "info", "warn", "error", "off"}, directive) {
			l.raw[key] = raw{directive, "environment RUST_LOG"}
		}
	}
}

// variable is what one environment name stands for.
type variable struct {
	key  string // with <i> for indexes
	file bool   // the value is the path of a file that holds the secret
}

// variables maps environment names, with <I> for indexes, to settings.
type variables map[string]variable

func (l *loader) variables() variables {
	all := variables{}
	for _, s := range l.known {
		for _, name := range s.environment() {
			all[name] = variable{s.key, false}
			if s.secret() {
				all[name+"_FILE"] = variable{s.key, true}
			}
		}
	}
	return all
}

var nameIndexes = regexp.MustCompile(`_(\d{1,3})_`)

// find looks a name up, with its indexes taken out.
func (v variables) find(name string) (found variable, index []string, ok bool) {
	if found, ok = v[name]; ok {
		return found, nil, true
	}
	for _, m := range nameIndexes.FindAllStringSubmatch(name, -1) {
		index = append(index, m[1])
	}
	found, ok = v[nameIndexes.ReplaceAllString(name, "_<I>_")]
	return found, index, ok && len(index) > 0
}

func (v variables) nearest(name string) string {
	best, least := "", 1<<30
	for _, known := range slices.Sorted(maps.Keys(v)) {
		if d := distance(nameIndexes.ReplaceAllString(name, "_<I>_"), known); d < least {
			best, least = known, d
		}
	}
	return best
}

// indexed puts the indexes into a key.
func indexed(key string, index []string) string {
	for _, i := range index {
		key = strings.Replace(key, "<i>", strings.TrimLeft(i[:len(i)-1], "0")+i[len(i)-1:], 1)
	}
	return key
}
