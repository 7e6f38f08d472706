package httpapi

import (
	"github.com/whippet-mq/whippet/libs/wire"
)

// options reads an object of text values into an options block. An entry that no block can hold is
// refused as what it is: a key or a value that does not exist. Of a key given twice the last stands.
func (r *reader) options() wire.Options {
	type entry struct{ key, value []byte }
	var entries []entry
	at := make(map[string]int)
	r.object(func(key []byte) {
		value := r.str()
		if i, again := at[string(key)]; again {
			entries[i].value = value
			return
		}
		at[string(key)] = len(entries)
		entries = append(entries, entry{key, value})
	})
	var block []byte
	for _, e := range entries {
		switch {
		case r.fault != nil:
			return nil
		case len(e.key) == 0 || len(e.key) > wire.MaxTLVField || len(entries) > wire.MaxOptions:
			r.fault = refusal(wire.CodeUnsupportedOptionKey)
		case len(e.value) == 0 || len(e.value) > wire.MaxTLVField:
			r.fault = refusal(wire.CodeInvalidOptionValue)
		default:
			block = wire.AppendOption(block, string(e.key), wire.KindString, e.value)
		}
	}
	return block
}

type optionSpecJSON struct {
	Key         string `json:"key"`
	Kind        string `json:"kind"`
	Default     []int  `json:"default_value"` // bytes in kind's encoding
	Description string `json:"description"`
}

var scopes = map[string]wire.OptionScope{"topic": wire.ScopeTopic, "stream": wire.ScopeStream, "user": wire.ScopeUser}

// getOptions serves GET /options/{scope}.
func getOptions(c *call) error {
	scope, ok := scopes[c.params[0]]
	if !ok {
		return refusal(wire.CodeInvalidCommand)
	}
	return c.read(wire.CmdDescribeOptions, wire.DescribeOptionsRequest{Scope: scope}.Append(nil), func(b []byte) error {
		list, err := wire.DecodeOptionCatalog(b)
		if err != nil {
			return err
		}
		out := make([]optionSpecJSON, len(list))
		for i, o := range list {
			out[i] = optionSpecJSON{Key: o.Key, Kind: kindName(o.Kind), Default: make([]int, len(o.Default)), Description: o.Description}
			for j, v := range o.Default {
				out[i].Default[j] = int(v)
			}
		}
		return c.json(out)
	})
}

// kinds are the names of value kinds; the first is kind 1.
var kinds = []string{
	"raw", "string", "bool", "int8", "int16", "int32", "int64", "int128", "uint8", "uint16", "uint32", "uint64", "uint128", "float32", "float64",
}

func kindName(k wire.ValueKind) string {
	if k < wire.KindRaw || int(k) > len(kinds) {
		return kinds[0]
	}
	return kinds[k-1]
}

// kind reads the name of a value kind.
func (r *reader) kind() wire.ValueKind {
	i := indexOf(kinds, r.str())
	if i < 0 {
		r.unfit("Expected the name of a header kind.")
	}
	return wire.ValueKind(i + 1)
}
