package httpapi

import (
	"net/url"
	"strconv"
	"unicode/utf8"

	"github.com/whippet-mq/whippet/libs/wire"
)

// query are the parameters of a request, each at most once where it is asked for.
type query struct {
	values url.Values
	fault  *failure
}

func (c *call) query() *query {
	values, err := url.ParseQuery(c.r.URL.RawQuery)
	q := &query{values: values}
	if err != nil {
		q.fault = badRequest("The query cannot be read.")
	}
	return q
}

// text returns a parameter's value.
func (q *query) text(name string) (value string, given bool) {
	list := q.values[name]
	if len(list) > 1 {
		q.bad(name)
	}
	if len(list) == 0 {
		return "", false
	}
	return list[0], true
}

func (q *query) bad(name string) {
	if q.fault == nil {
		q.fault = badRequest("The query parameter " + name + " is not valid.")
	}
}

// uint reads a number of the given width in bits; def stands when it is not given.
func (q *query) uint(name string, width int, def uint64) uint64 {
	text, given := q.text(name)
	if !given {
		return def
	}
	n, err := strconv.ParseUint(text, 10, width)
	if err != nil {
		q.bad(name)
	}
	return n
}

// required reads a u32 that must be given.
func (q *query) required(name string) uint32 {
	if _, given := q.values[name]; !given {
		q.bad(name)
	}
	return uint32(q.uint(name, 32, 0))
}

// optional reads a u32 that may be left out.
func (q *query) optional(name string) wire.PartitionSelector {
	_, given := q.values[name]
	return wire.PartitionSelector{Set: given, ID: uint32(q.uint(name, 32, 0))}
}

// word reads one of the words and returns its index; the first stands when it is not given.
func (q *query) word(name string, words ...string) int {
	text, given := q.text(name)
	if !given {
		return 0
	}
	for i, w := range words {
		if text == w {
			return i
		}
	}
	q.bad(name)
	return 0
}

// consistency accepts what every read accepts; one node is always up to date with itself, and a read
// through a front-door with a follower is as fresh as its last write.
func (q *query) consistency() { q.word("consistency", "serializable", "linearizable") }

// consumer reads a consumer's number or name; 1 stands when it is not given.
func (q *query) consumer() wire.Identifier {
	text, given := q.text("consumer_id")
	if !given {
		return wire.NumericID(1)
	}
	id, ok := identifier(text)
	if !ok {
		q.bad("consumer_id")
	}
	return id
}

// err is the first fault.
func (q *query) err() error {
	if q.fault != nil {
		return q.fault
	}
	return nil
}

// identifier reads a u32 as a number and everything else of 1 to 255 bytes as a name.
func identifier(text string) (wire.Identifier, bool) {
	if n, err := strconv.ParseUint(text, 10, 32); err == nil && text[0] != '+' {
		return wire.NumericID(uint32(n)), true
	}
	if text == "" || len(text) > wire.MaxName || !utf8.ValidString(text) {
		return wire.Identifier{}, false
	}
	return wire.NamedID(text), true
}
