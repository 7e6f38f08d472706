package httpapi

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/whippet-mq/whippet/libs/wire"
)

// userHeaders reads the headers of a message: entries, or base64 of bytes only their reader
// understands. Entries are stored by kind and key; of a key given twice the last stands.
func (p *production) userHeaders() []byte {
	switch {
	case p.null():
		return nil
	case p.next() == '"':
		return p.limitHeaders(p.base64())
	}
	var pairs []wire.Pair
	p.list(func() { pairs = append(pairs, p.header()) })
	if p.fault != nil {
		return nil
	}
	slices.SortStableFunc(pairs, compareKeys)
	var block []byte
	for i, pair := range pairs {
		if i+1 < len(pairs) && compareKeys(pair, pairs[i+1]) == 0 {
			continue
		}
		block = pair.Append(block)
	}
	return p.limitHeaders(block)
}

func compareKeys(a, b wire.Pair) int {
	return cmp.Or(cmp.Compare(a.KeyKind, b.KeyKind), bytes.Compare(a.Key, b.Key))
}

func (p *production) limitHeaders(block []byte) []byte {
	if len(block) > wire.MaxUserHeaders {
		p.unfit("The user headers of a message take at most 100000 bytes.")
	}
	return block
}

// header reads {"key":{"kind","value"},"value":{"kind","value"}}.
func (p *production) header() (pair wire.Pair) {
	p.record([]string{"key", "value"}, 2, func(i int) {
		kind, value := p.headerField()
		if i == 0 {
			pair.KeyKind, pair.Key = kind, value
		} else {
			pair.ValueKind, pair.Value = kind, value
		}
	})
	return pair
}

func (p *production) headerField() (kind wire.ValueKind, value []byte) {
	p.record([]string{"kind", "value"}, 2, func(i int) {
		if i == 0 {
			kind = p.kindOf()
		} else if value = p.base64(); len(value) == 0 || len(value) > wire.MaxTLVField {
			p.unfit("A header's key and value take 1 to 255 bytes.")
		}
	})
	return kind, value
}

func (p *production) kindOf() wire.ValueKind { return p.reader.kind() }
