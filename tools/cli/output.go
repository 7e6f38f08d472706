package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// record is one object: its fields in the order they are shown. A field's value may be a list.
type record []field

type field struct {
	Name  string // as in JSON: words joined by underscores
	Value any
}

// list is many objects of one kind.
type list []record

// Values with a form of their own in tables.
type (
	bytesCount uint64 // bytes
	instant    uint64 // µs since the epoch, 0 for none
	span       uint64 // µs, 2^64-1 for never
	limit      uint64 // bytes, 2^64-1 for unlimited
)

// print shows a result: a record, a list, text, or nothing.
func (a *app) print(result any) error {
	switch v := result.(type) {
	case nil:
		return nil
	case string:
		_, err := fmt.Fprintln(a.Out, v)
		return err
	case record:
		if a.output == "json" {
			return a.printJSON(v)
		}
		return writeRecord(a.Out, v)
	case list:
		if a.output == "json" {
			return a.printJSON(v)
		}
		return writeTable(a.Out, v)
	}
	return fmt.Errorf("no way to print a %T", result)
}

func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.Out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// MarshalJSON keeps the fields' order.
func (r record) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range r {
		if i > 0 {
			b.WriteByte(',')
		}
		value, err := json.Marshal(f.Value)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%q:%s", f.Name, value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// MarshalJSON writes an empty list as [].
func (l list) MarshalJSON() ([]byte, error) { return json.Marshal(append([]record{}, l...)) }

func (t instant) MarshalJSON() ([]byte, error) {
	if t == 0 {
		return []byte("null"), nil
	}
	return json.Marshal(t.String())
}

func (t instant) String() string {
	if t == 0 {
		return "never"
	}
	return time.UnixMicro(int64(t)).UTC().Format("2006-01-02T15:04:05.000000Z")
}

func (s span) MarshalJSON() ([]byte, error) { return unbounded(uint64(s)) }

func (s span) String() string {
	if s == 0 || uint64(s) == ^uint64(0) {
		return "never"
	}
	return (time.Duration(min(uint64(s), 1<<53)) * time.Microsecond).String()
}

func (l limit) MarshalJSON() ([]byte, error) { return unbounded(uint64(l)) }

func (l limit) String() string {
	if l == 0 || uint64(l) == ^uint64(0) {
		return "unlimited"
	}
	return bytesCount(l).String()
}

// unbounded writes a number, null for the one that means no bound.
func unbounded(v uint64) ([]byte, error) {
	if v == 0 || v == ^uint64(0) {
		return []byte("null"), nil
	}
	return json.Marshal(v)
}

func (n bytesCount) String() string {
	if n < 1024 {
		return fmt.Sprintf("%d B", uint64(n))
	}
	v, units := float64(n), "KMGTPE"
	for v >= 1024 && units != "" {
		v /= 1024
		if v < 1024 || len(units) == 1 {
			break
		}
		units = units[1:]
	}
	return fmt.Sprintf("%.1f %ciB", v, units[0])
}

// writeRecord shows one object as two columns, lists in it as tables below.
func writeRecord(w io.Writer, r record) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range r {
		if _, nested := f.Value.(list); !nested {
			fmt.Fprintf(t, "%s\t%v\n", title(f.Name), f.Value)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, f := range r {
		if l, nested := f.Value.(list); nested && len(l) > 0 {
			fmt.Fprintf(w, "\n%s\n", title(f.Name))
			if err := writeTable(w, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeTable shows objects as rows; lists in them are left out.
func writeTable(w io.Writer, l list) error {
	if len(l) == 0 {
		_, err := fmt.Fprintln(w, "none")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, r := range l {
		var names, values []string
		for _, f := range r {
			if _, nested := f.Value.(list); !nested {
				names = append(names, strings.ToUpper(title(f.Name)))
				values = append(values, fmt.Sprint(f.Value))
			}
		}
		if i == 0 {
			fmt.Fprintln(t, strings.Join(names, "\t"))
		}
		fmt.Fprintln(t, strings.Join(values, "\t"))
	}
	return t.Flush()
}

func title(name string) string { return strings.ReplaceAll(name, "_", " ") }
