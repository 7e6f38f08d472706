package wire

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// hashVectors checks both hashes against the values that the vectors carry.
func hashVectors(vectors map[string]clientVector) map[string]vectorCheck {
	checks := map[string]vectorCheck{}
	for name := range vectors {
		switch {
		case strings.HasPrefix(name, "xxh3_64_"):
			checks[name] = func(t *testing.T, b []byte) {
				if got, want := Hash64(b), expectedHash(t, name, "xxh3_64"); got != want {
					t.Errorf("hash %x, want %x", got, want)
				}
			}
		case strings.HasPrefix(name, "xxh32_"):
			checks[name] = func(t *testing.T, b []byte) {
				if got, want := NameHash(b), expectedHash(t, name, "xxh32"); uint64(got) != want {
					t.Errorf("hash %x, want %x", got, want)
				}
			}
		case strings.HasSuffix(name, "_checksum_input"):
			checks[name] = func(t *testing.T, b []byte) {
				if got, want := Hash64(b), expectedHash(t, name, "xxh3_64"); got != want {
					t.Errorf("hash %x, want %x", got, want)
				}
			}
		}
	}
	return checks
}

// expectedHash reads a 0x number from a vector's expectations.
func expectedHash(t *testing.T, name, key string) uint64 {
	t.Helper()
	file, err := os.ReadFile("testdata/client-wire.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []struct {
		Name   string
		Expect map[string]any
	}
	if err := json.Unmarshal(file, &list); err != nil {
		t.Fatal(err)
	}
	for _, v := range list {
		if v.Name == name {
			n, err := strconv.ParseUint(v.Expect[key].(string), 0, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no vector %s", name)
	return 0
}

func primitiveVectors() map[string]vectorCheck {
	identifier, consumer := whole((*reader).identifier), whole((*reader).consumer)
	selector, partitioning := whole((*reader).selector), whole((*reader).partitioning)
	strategy := whole((*reader).strategy)
	word := func(want uint32, got uint32) vectorCheck {
		return func(t *testing.T, b []byte) {
			if got != want || !bytes.Equal(appendU32(nil, got), b) {
				t.Errorf("word %d = %x, want %d = %x", got, appendU32(nil, got), want, b)
			}
		}
	}
	group := func(stream, topic, partition uint32) vectorCheck {
		return func(t *testing.T, b []byte) {
			id := GroupID(stream, topic, partition, 0)
			s, p, q, tag := SplitGroupID(le.Uint64(b))
			if !bytes.Equal(appendU64(nil, id), b) || s != stream || p != topic || q != partition || tag != 0 {
				t.Errorf("group %x splits to %d %d %d %d", id, s, p, q, tag)
			}
		}
	}
	return map[string]vectorCheck{
		"identifier_numeric_0":          body(identifier, NumericID(0)),
		"identifier_numeric_1":          body(identifier, NumericID(1)),
		"identifier_numeric_max":        body(identifier, NumericID(4294967295)),
		"identifier_string":             body(identifier, NamedID("orders")),
		"identifier_string_utf8":        body(identifier, NamedID("zażółć")),
		"identifier_bad_numeric_length": refused(identifier, CodeInvalidCommand),
		"identifier_bad_kind":           refused(identifier, CodeInvalidCommand),
		"identifier_bad_empty_string":   refused(identifier, CodeInvalidCommand),
		"identifier_bad_utf8":           refused(identifier, CodeInvalidCommand),

		"consumer_numeric":      body(consumer, Consumer{ConsumerSingle, NumericID(42)}),
		"consumer_group_string": body(consumer, Consumer{ConsumerGroup, NamedID("grp")}),

		"partition_some_3": body(selector, SelectPartition(3)),
		"partition_none":   body(selector, PartitionSelector{}),
		"partition_flag_2": func(t *testing.T, b []byte) {
			if got, err := selector(b); got.Set || err != nil {
				t.Errorf("decoded to %+v, %v; want absent", got, err)
			}
		},

		"partitioning_balanced":    body(partitioning, Partitioning{Kind: PartitioningBalanced}),
		"partitioning_partition_9": body(partitioning, Partitioning{Kind: PartitioningPartition, Partition: 9}),
		"partitioning_key": func(t *testing.T, b []byte) {
			key := []byte("order-key")
			body(partitioning, Partitioning{Kind: PartitioningKey, Key: key})(t, b)
			if KeyIndex(key, 10) != 4 || KeyIndex(key, 3) != 0 {
				t.Errorf("index of 10 is %d, of 3 %d", KeyIndex(key, 10), KeyIndex(key, 3))
			}
		},

		"strategy_offset":    body(strategy, Strategy{StrategyOffset, 69420}),
		"strategy_timestamp": body(strategy, Strategy{StrategyTimestamp, 1700000000000000}),
		"strategy_first":     body(strategy, Strategy{Kind: StrategyFirst}),
		"strategy_last":      body(strategy, Strategy{Kind: StrategyLast}),
		"strategy_next":      body(strategy, Strategy{Kind: StrategyNext}),

		"protocol_version_0_11_0": word(11264, ProtocolVersion),
		"protocol_version_1_2_3":  word(1050627, PackVersion(1, 2, 3)),
		"stats_semver_0_9_0":      word(9000, StatsVersion(0, 9, 0)),

		"group_0_0_0":               group(0, 0, 0),
		"group_5_2_7":               group(5, 2, 7),
		"group_1_0_0":               group(1, 0, 0),
		"group_4095_4095_999999":    group(4095, 4095, 999999),
		"group_4096_0_0":            group(4096, 0, 0),
		"group_1048575_4095_999999": group(1048575, 4095, 999999),
		"group_metadata": func(t *testing.T, b []byte) {
			if le.Uint64(b) != MetadataGroup {
				t.Errorf("metadata group %x", le.Uint64(b))
			}
		},

		"user_headers_three_pairs": func(t *testing.T, b []byte) {
			headers, err := DecodeUserHeaders(b)
			if err != nil {
				t.Fatal(err)
			}
			want := []Pair{
				{KindString, []byte("trace-id"), KindString, []byte("abc-123")},
				{KindString, []byte("attempt"), KindUint32, []byte{3, 0, 0, 0}},
				{KindString, []byte("hot"), KindBool, []byte{1}},
			}
			var enc []byte
			for i, p := range slices.Collect(headers.All()) {
				if i >= len(want) || !bytes.Equal(p.Append(nil), want[i].Append(nil)) || p.ValueKind.Check(p.Value) != nil {
					t.Errorf("pair %d: %+v", i, p)
				}
				enc = p.Append(enc)
			}
			if !bytes.Equal(enc, b) {
				t.Errorf("encoded %x", enc)
			}
		},
		"user_headers_bad_zero_kind":   opaqueHeaders,
		"user_headers_bad_zero_length": opaqueHeaders,
		"user_headers_bad_odd_fields":  opaqueHeaders,

		"options_golden":        optionsGolden,
		"options_all_defaults":  optionsAllDefaults,
		"options_string_forms":  optionsStringForms,
		"options_bad_duplicate": refused(DecodeOptions, CodeInvalidCommand),
		"options_bad_key_kind":  refused(DecodeOptions, CodeInvalidCommand),
		"options_unknown_key":   optionsRefused(CodeUnsupportedOptionKey),
		"options_bad_value":     optionsRefused(CodeInvalidOptionValue),
	}
}

// opaqueHeaders checks bytes that are no pairs but travel as a message's user headers all the same.
func opaqueHeaders(t *testing.T, b []byte) {
	refused(DecodeUserHeaders, CodeInvalidHeaderValue)(t, b)
	batch, err := AppendBatch(nil, []NewMessage{{Payload: []byte("p"), UserHeaders: b}})
	if err != nil || VerifyBatch(batch) != nil {
		t.Errorf("batch refused: %v, %v", err, VerifyBatch(batch))
	}
}

func optionsGolden(t *testing.T, b []byte) {
	block, err := DecodeOptions(b)
	if err != nil {
		t.Fatal(err)
	}
	o, err := ParseTopicOptions(block)
	want := DefaultTopicOptions()
	want.Persisted = true
	if o.explicit, o.sent = 0, 0; err != nil || o != want {
		t.Errorf("%+v, %v", o, err)
	}
}

func optionsAllDefaults(t *testing.T, b []byte) {
	defaults := DefaultTopicOptions()
	if got := defaults.AppendDerived(nil, GenerationSnapshot); !bytes.Equal(got, b) {
		t.Errorf("derived\n %x, want\n %x", got, b)
	}
	o, err := ParseTopicOptions(b)
	if got := o.AppendExplicit(nil); err != nil || !bytes.Equal(got, b) {
		t.Errorf("explicit %x, %v", got, err)
	}
}

func optionsStringForms(t *testing.T, b []byte) {
	o, err := ParseTopicOptions(b)
	if err != nil {
		t.Fatal(err)
	}
	if o.Compression != CompressionGzip || !o.Persisted || o.MaxTopicSize != 5368709120 || o.MessageExpiry != 5400000000 {
		t.Errorf("%+v", o)
	}
	canonical := AppendOption(nil, OptionCompression, KindString, []byte("gzip"))
	canonical = AppendOption(canonical, OptionEnforceFsync, KindBool, []byte{1})
	canonical = AppendOption(canonical, OptionMaxTopicSize, KindUint64, appendU64(nil, 5368709120))
	canonical = AppendOption(canonical, OptionMessageExpiry, KindUint64, appendU64(nil, 5400000000))
	if got := o.AppendExplicit(nil); !bytes.Equal(got, canonical) {
		t.Errorf("explicit\n %x, want\n %x", got, canonical)
	}
}

func optionsRefused(want Code) vectorCheck {
	return func(t *testing.T, b []byte) {
		block, err := DecodeOptions(b)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseTopicOptions(block); err != want {
			t.Errorf("%v, want %v", err, want)
		}
	}
}
