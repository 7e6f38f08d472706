package wire

import (
	"bytes"
	"iter"
	"slices"
	"unicode/utf8"
)

// Options is a valid options block: String keys, each once, UTF-8, at most MaxOptions entries and
// MaxOptionsSize bytes. Nil and empty mean none. It aliases the body it was decoded from.
type Options []byte

// DecodeOptions checks that b is an options block from front to end. Its error is
// CodeInvalidCommand. A value kind without a name passes here and fails where its key is read.
func DecodeOptions(b []byte) (Options, error) {
	r := reader{rest: b}
	o := r.options()
	return o, r.err()
}

// All yields the entries in the block's order.
func (o Options) All() iter.Seq[Pair] { return pairs(o) }

// Get returns the entry of key.
func (o Options) Get(key string) (Pair, bool) {
	for p := range o.All() {
		if string(p.Key) == key {
			return p, true
		}
	}
	return Pair{}, false
}

// AppendOption writes one entry behind dst, a block under construction. Key and value are 1..255
// bytes.
func AppendOption(dst []byte, key string, kind ValueKind, value []byte) []byte {
	dst = appendStr32(append(dst, byte(KindString)), key)
	return appendStr32(append(dst, byte(kind)), value)
}

// AppendPrefixed writes o with its length in front, as replies carry it: len:u32 block.
func (o Options) AppendPrefixed(dst []byte) []byte { return appendStr32(dst, o) }

// AppendSorted writes o's entries behind dst in the order of their keys.
func (o Options) AppendSorted(dst []byte) []byte {
	return appendPairs(dst, sortedPairs(o))
}

// MergeOptions writes the entries of stored and sent behind dst in the order of their keys. Where
// both hold a key the entry of sent stands, kind and bytes as sent.
func MergeOptions(dst []byte, stored, sent Options) []byte {
	merged := sortedPairs(sent)
	for p := range stored.All() {
		if _, found := sent.Get(string(p.Key)); !found {
			merged = append(merged, p)
		}
	}
	slices.SortFunc(merged, byKey)
	return appendPairs(dst, merged)
}

func sortedPairs(o Options) []Pair {
	sorted := slices.Collect(o.All())
	slices.SortFunc(sorted, byKey)
	return sorted
}

func byKey(a, b Pair) int { return bytes.Compare(a.Key, b.Key) }

func appendPairs(dst []byte, pairs []Pair) []byte {
	for _, p := range pairs {
		dst = p.Append(dst)
	}
	return dst
}

// options reads the rest of the body as an options block.
func (r *reader) options() Options {
	block := r.rest
	if len(block) > MaxOptionsSize {
		r.fail()
		return nil
	}
	count := 0
	for len(r.rest) > 0 {
		p := r.pair()
		count++
		if p.KeyKind != KindString || !utf8.Valid(p.Key) || count > MaxOptions {
			r.fail()
		}
	}
	if r.bad || !uniqueKeys(block, count) {
		r.fail()
		return nil
	}
	return block
}

// prefixedOptions reads len:u32 and an options block of that length.
func (r *reader) prefixedOptions() Options {
	inner := reader{rest: r.blk32()}
	o := inner.options()
	if inner.bad {
		r.fail()
	}
	return o
}

// uniqueKeys tells whether the count keys of a walkable block differ. Every block a client sends in
// earnest has few keys; a set keeps a hostile one from costing count squared.
func uniqueKeys(block Options, count int) bool {
	if count <= 16 {
		return uniqueFewKeys(block)
	}
	seen := make(map[string]struct{}, count)
	for p := range block.All() {
		seen[string(p.Key)] = struct{}{}
	}
	return len(seen) == count
}

func uniqueFewKeys(block Options) bool {
	rest := reader{rest: block}
	for len(rest.rest) > 0 {
		key := rest.pair().Key
		later := reader{rest: rest.rest}
		for len(later.rest) > 0 {
			if bytes.Equal(later.pair().Key, key) {
				return false
			}
		}
	}
	return true
}
