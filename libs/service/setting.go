package service

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// setting is one leaf of Config: where its value stands and what its tags say.
type setting struct {
	key   string // path in the TOML file; elements of a list of tables carry their index
	value reflect.Value
	tag   reflect.StructTag
	use   string // own or inherited use tag
}

// table is a list of tables in Config, such as cluster.nodes.
type table struct {
	key   string
	slice reflect.Value
	use   string
}

// walk visits the settings and the lists of tables below v in declaration order. It does not enter
// the elements of a list.
func walk(v reflect.Value, prefix, use string, leaf func(setting), list func(table)) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, tagged := field.Tag.Lookup("key")
		if !tagged || name == "-" {
			continue
		}
		key := strings.Trim(prefix+"."+name, ".")
		inherited := use
		if own, ok := field.Tag.Lookup("use"); ok {
			inherited = own
		}
		at := v.Field(i)
		switch {
		case at.Kind() == reflect.Struct && at.Type() != reflect.TypeFor[Secret]():
			walk(at, key, inherited, leaf, list)
		case at.Kind() == reflect.Slice && at.Type().Elem().Kind() == reflect.Struct:
			list(table{key, at, inherited})
		default:
			leaf(setting{key, at, field.Tag, inherited})
		}
	}
}

func (s setting) secret() bool { return s.value.Type() == reflect.TypeFor[Secret]() }

// environment returns the names of the setting's variables, the canonical one first.
func (s setting) environment() []string {
	given := strings.Fields(s.tag.Get("env"))
	if len(given) > 0 && strings.HasPrefix(given[0], "=") {
		return append([]string{given[0][1:]}, given[1:]...)
	}
	path := strings.ToUpper(strings.ReplaceAll(s.key, ".", "_"))
	if _, own := s.tag.Lookup("own"); own {
		return append([]string{"WHIPPET_" + path}, given...)
	}
	names := []string{"IGGY_" + path}
	if short, ok := strings.CutPrefix(path, "SYSTEM_"); ok {
		names = append(names, "IGGY_"+short)
	}
	return append(names, given...)
}

// set stores a raw value (from TOML: string, bool, int64, float64 or a list; else string).
func (s setting) set(raw any) error {
	text, isText := raw.(string)
	if !isText && s.value.Kind() != reflect.Slice {
		text = fmt.Sprint(raw)
	}
	switch target := s.value.Addr().Interface().(type) {
	case *time.Duration:
		d, err := ParseDuration(text)
		if err != nil {
			return err
		}
		*target = d
		return s.inRange(int64(d), func(t string) (int64, error) { d, err := ParseDuration(t); return int64(d), err })
	case *Size:
		n, err := ParseSize(text)
		if err != nil {
			return err
		}
		*target = n
		return s.inRange(int64(n), func(t string) (int64, error) { n, err := ParseSize(t); return int64(n), err })
	case *Secret:
		*target = Secret{text}
	case *string:
		*target = text
	case *bool:
		b, err := strconv.ParseBool(strings.ToLower(text))
		if err != nil {
			return fmt.Errorf("not a truth value")
		}
		*target = b
	case *[]string:
		items, err := list(raw)
		if err != nil {
			return err
		}
		*target = items
		return nil
	default:
		return s.setInteger(text)
	}
	return s.formed(text)
}

func (s setting) setInteger(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return fmt.Errorf("not a whole number")
	}
	if s.value.CanUint() {
		if n < 0 || s.value.OverflowUint(uint64(n)) {
			return fmt.Errorf("out of range")
		}
		s.value.SetUint(uint64(n))
	} else {
		s.value.SetInt(n)
	}
	if err := s.formed(text); err != nil {
		return err
	}
	return s.inRange(n, func(t string) (int64, error) { return strconv.ParseInt(t, 10, 64) })
}

// list reads a list of texts: a TOML list, "[a, b]" or "a, b".
func list(raw any) ([]string, error) {
	items := []string{}
	switch raw := raw.(type) {
	case []any:
		for _, item := range raw {
			text, ok := item.(string)
			if !ok {
				return nil, fmt.Errorf("not a list of texts")
			}
			items = append(items, text)
		}
	case string:
		inner := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(raw), "["), "]")
		for item := range strings.SplitSeq(inner, ",") {
			if item = strings.Trim(strings.TrimSpace(item), `"'`); item != "" {
				items = append(items, item)
			}
		}
	default:
		return nil, fmt.Errorf("not a list of texts")
	}
	return items, nil
}

func (s setting) inRange(n int64, parse func(string) (int64, error)) error {
	bounds := s.tag.Get("range")
	if bounds == "" {
		return nil
	}
	low, high, _ := strings.Cut(bounds, "..")
	limit := func(text string, otherwise int64) int64 {
		if text == "" {
			return otherwise
		}
		v, err := parse(text)
		if err != nil {
			panic("range tag of " + s.key + ": " + err.Error())
		}
		return v
	}
	if n < limit(low, math.MinInt64) || n > limit(high, math.MaxInt64) {
		return fmt.Errorf("out of range")
	}
	return nil
}

// formed checks the one and form tags. An empty text is "not given" and passes.
func (s setting) formed(text string) error {
	if text == "" {
		return nil
	}
	if words := strings.Fields(s.tag.Get("one")); len(words) > 0 && !slices.Contains(words, text) {
		return fmt.Errorf("not one of the words")
	}
	var err error
	switch s.tag.Get("form") {
	case "hostport":
		err = hostport(text)
	case "ip":
		_, err = netip.ParseAddr(text)
	case "cidr":
		_, err = netip.ParsePrefix(text)
	case "url":
		var u *url.URL
		if u, err = url.Parse(text); err == nil && u.Host == "" {
			err = fmt.Errorf("no host")
		}
	}
	if err != nil {
		return fmt.Errorf("not of the right form")
	}
	return nil
}

func hostport(text string) error {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return err
	}
	if strings.ContainsAny(host, " /@") {
		return fmt.Errorf("not a host")
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err
}

// allowed says in words what the setting accepts.
func (s setting) allowed() string {
	if words := strings.Fields(s.tag.Get("one")); len(words) > 0 {
		return strings.Join(words, ", ")
	}
	var kind string
	switch {
	case s.value.Type() == reflect.TypeFor[time.Duration]():
		kind = "duration"
	case s.value.Type() == reflect.TypeFor[Size]():
		kind = "size"
	case s.value.Kind() == reflect.Bool:
		return "true, false"
	case s.value.Kind() == reflect.Slice:
		return "list of texts"
	case s.value.Kind() == reflect.Uint16:
		kind = "number 0..65535"
	case s.value.CanInt() || s.value.CanUint():
		kind = "number"
	default:
		return map[string]string{"": "text", "hostport": "host:port", "ip": "IP address", "cidr": "network/bits", "url": "URL", "base64": "base64"}[s.tag.Get("form")]
	}
	bounds := s.tag.Get("range")
	low, high, _ := strings.Cut(bounds, "..")
	switch {
	case bounds == "":
		return kind
	case low == "":
		return kind + ", at most " + high
	case high == "":
		return kind + ", at least " + low
	}
	return kind + ", " + low + " to " + high
}

// text returns the value as a user would write it; secrets come out redacted.
func (s setting) text() string {
	switch v := s.value.Interface().(type) {
	case time.Duration:
		return formatDuration(v)
	case []string:
		return "[" + strings.Join(v, ", ") + "]"
	default:
		return fmt.Sprint(v)
	}
}

// isDefault reports whether the value equals the default tag's.
func (s setting) isDefault() bool {
	fresh := s
	fresh.value = reflect.New(s.value.Type()).Elem()
	fresh.setDefault()
	return reflect.DeepEqual(fresh.value.Interface(), s.value.Interface())
}

func (s setting) setDefault() {
	text, ok := s.tag.Lookup("default")
	if !ok {
		return
	}
	if err := s.set(text); err != nil {
		panic("default of " + s.key + ": " + err.Error())
	}
}
