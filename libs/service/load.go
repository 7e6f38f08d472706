package service

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Warning is something odd in the configuration that does not keep a process from starting.
type Warning struct {
	Name string // setting or variable
	Text string // what is odd and what follows
}

func (w Warning) String() string { return w.Name + ": " + w.Text }

// ConfigError is one setting that keeps the process from starting. The value of a secret is redacted.
type ConfigError struct {
	Key     string
	Value   string
	Source  string // file, environment variable or flag
	Problem string
	Allowed string // empty where the problem says it
}

func (e *ConfigError) Error() string {
	text := fmt.Sprintf("%s = %q (%s): %s", e.Key, e.Value, e.Source, e.Problem)
	if e.Allowed != "" {
		text += "; allowed: " + e.Allowed
	}
	return text
}

// Load reads the configuration: defaults, then the TOML file, then the environment (environ in the
// form of os.Environ), then args (without the program's name). The file is the one --config names,
// else IGGY_CONFIG_PATH; without either there is none.
//
// The error joins one ConfigError per bad setting, or is ErrHelp or ErrVersion. Warnings are worth
// one log line each.
func Load(args, environ []string) (*Config, []Warning, error) {
	flags, err := parseFlags(args)
	if err != nil {
		return nil, nil, err
	}
	env, err := environment(environ)
	if err != nil {
		return nil, nil, err
	}
	l := &loader{raw: map[string]raw{}, known: catalog()}
	path := flags.config
	if path == "" {
		path = env["IGGY_CONFIG_PATH"]
	}
	if path != "" {
		l.readFile(path)
	}
	l.readEnvironment(env)
	if flags.replicaID != "" {
		l.raw["replica_id"] = raw{flags.replicaID, "flag --replica-id"}
	}
	c := &Config{Fresh: flags.fresh, DefaultRoot: flags.defaultRoot, AcceptMetadataLoss: flags.acceptLoss, sources: map[string]string{}}
	l.decode(c)
	if len(l.errs) == 0 {
		l.errs = append(l.errs, c.check()...)
	}
	if len(l.errs) > 0 {
		return nil, l.warnings, errors.Join(l.errs...)
	}
	return c, l.warnings, nil
}

// Defaults returns the configuration of an empty file and environment.
func Defaults() *Config {
	c := &Config{sources: map[string]string{}}
	(&loader{raw: map[string]raw{}}).decode(c)
	return c
}

// raw is a value as it was given.
type raw struct {
	value  any
	source string
}

type loader struct {
	raw      map[string]raw // key -> value; the later source has overwritten the earlier
	known    []setting      // every setting, elements of lists with the index <i>
	warnings []Warning
	errs     []error
}

// catalog returns every setting there is, in declaration order, list elements under the index <i>.
func catalog() []setting {
	var all []setting
	var add func(v reflect.Value, prefix, use string)
	add = func(v reflect.Value, prefix, use string) {
		walk(v, prefix, use, func(s setting) { all = append(all, s) }, func(t table) {
			add(reflect.New(t.slice.Type().Elem()).Elem(), t.key+".<i>", t.use)
		})
	}
	add(reflect.ValueOf(&Config{}).Elem(), "", "")
	return all
}

// decode moves the raw values into c and complains about those that no setting took.
func (l *loader) decode(c *Config) {
	l.fill(reflect.ValueOf(c).Elem(), "", "", c.sources)
	for _, key := range slices.Sorted(maps.Keys(l.raw)) {
		given := l.raw[key]
		problem := fmt.Sprintf("unknown key; the nearest is %s", l.nearest(key))
		if hint, moved := movedKey(key); moved {
			problem = hint
		}
		l.errs = append(l.errs, &ConfigError{Key: key, Value: redacted, Source: given.source, Problem: problem})
	}
}

func (l *loader) fill(v reflect.Value, prefix, use string, sources map[string]string) {
	walk(v, prefix, use, func(s setting) {
		s.setDefault()
		given, ok := l.raw[s.key]
		if !ok {
			return
		}
		delete(l.raw, s.key)
		sources[s.key] = given.source
		l.take(s, given)
	}, func(t table) {
		if empty, ok := l.raw[t.key].value.([]any); ok && len(empty) == 0 {
			delete(l.raw, t.key)
		}
		n := l.elements(t.key)
		t.slice.Set(reflect.MakeSlice(t.slice.Type(), n, n))
		for i := range n {
			l.fill(t.slice.Index(i), t.key+"."+strconv.Itoa(i), t.use, sources)
		}
	})
}

// take stores one given value and applies the use tag.
func (l *loader) take(s setting, given raw) {
	refuse := func(problem, allowed string) {
		text := fmt.Sprint(given.value)
		if s.secret() {
			text = redacted
		}
		l.errs = append(l.errs, &ConfigError{s.key, text, given.source, problem, allowed})
	}
	if err := s.set(given.value); err != nil {
		refuse(err.Error(), s.allowed())
		return
	}
	mode, why, _ := strings.Cut(s.use, ": ")
	if mode == "" || s.isDefault() {
		return
	}
	if mode == "refuse" {
		allowed := s.tag.Get("default")
		if allowed == "" {
			allowed = "nothing, leave it out"
		}
		refuse(why, allowed)
		return
	}
	l.warnings = append(l.warnings, Warning{s.key, "has no effect (" + given.source + "): " + why})
}

// maxElements bounds a list of tables, so that an index in a variable's name cannot claim memory.
const maxElements = 256

// elements counts the elements of a list of tables by the highest index given.
func (l *loader) elements(key string) int {
	n := 0
	for name := range l.raw {
		rest, ok := strings.CutPrefix(name, key+".")
		if !ok {
			continue
		}
		index, _, _ := strings.Cut(rest, ".")
		if i, err := strconv.Atoi(index); err == nil && i >= n && i < maxElements {
			n = i + 1
		}
	}
	return n
}

// movedKey knows the reference's keys that became topic options.
func movedKey(key string) (hint string, moved bool) {
	moves := []string{"system.topic.max_size", "system.topic.message_expiry", "system.partition.enforce_fsync",
		"system.partition.messages_required_to_save", "system.partition.size_of_messages_required_to_save",
		"system.segment.size", "system.segment.preallocate"}
	if slices.Contains(moves, key) || strings.HasPrefix(key, "system.message_deduplication.") || strings.HasPrefix(key, "extra.") {
		return "this became an option of each topic: give it when the topic is created", true
	}
	return "", false
}

// nearest returns the known key with the smallest edit distance to key.
func (l *loader) nearest(key string) string {
	best, least := "", 1<<30
	for _, s := range l.known {
		if d := distance(indexes.ReplaceAllString(key, ".<i>"), s.key); d < least {
			best, least = s.key, d
		}
	}
	return best
}

// distance is the Levenshtein distance of two texts.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// check holds the rules that concern more than one setting.
func (c *Config) check() []error {
	var errs []error
	bad := func(key, value, problem string) {
		errs = append(errs, &ConfigError{Key: key, Value: value, Source: c.Source(key), Problem: problem})
	}
	switch root := c.Root; {
	case (root.Username != "") != root.Password.Given():
		bad("root", "", "username and password are given together or not at all")
	case root.Username == "":
	case len(root.Username) < 3 || len(root.Username) > 50:
		bad("root.username", root.Username, "a name has 3 to 50 bytes")
	case len(root.Password.Reveal()) < 3 || len(root.Password.Reveal()) > 100:
		bad("root.password", redacted, "a password has 3 to 100 bytes")
	}
	certificate := func(key string, self bool, cert, private string) {
		if self {
			return
		}
		if cert == "" || private == "" {
			bad(key+".cert_file", cert, "certificate and key are needed, or "+key+".self_signed")
		} else if _, err := os.Stat(cert); err != nil {
			bad(key+".cert_file", cert, "cannot be read, and "+key+".self_signed is off")
		}
	}
	if tls := c.TCP.TLS; tls.Enabled {
		certificate("tcp.tls", tls.SelfSigned, tls.CertFile, tls.KeyFile)
	}
	if tls := c.WebSocket.TLS; c.WebSocket.Enabled && tls.Enabled {
		certificate("websocket.tls", tls.SelfSigned, tls.CertFile, tls.KeyFile)
	}
	if q := c.QUIC; q.Enabled {
		certificate("quic.certificate", q.Certificate.SelfSigned, q.Certificate.CertFile, q.Certificate.KeyFile)
		if q.StreamReceiveWindow > q.ReceiveWindow {
			bad("quic.stream_receive_window", q.StreamReceiveWindow.String(), "more than quic.receive_window")
		}
	}
	if most := c.WebSocket.MaxMessageSize; most > c.MessageBus.MaxMessageSize {
		bad("websocket.max_message_size", most.String(), "more than message_bus.max_message_size")
	}
	if c.Cluster.Enabled {
		c.checkCluster(bad)
	}
	if secret := c.Cluster.Auth.SharedSecret; secret.Given() && len(secret.Reveal()) < 32 {
		bad("cluster.auth.shared_secret", redacted, "a cluster secret has at least 32 bytes")
	}
	return errs
}
