package wire

import (
	"bytes"
	"slices"
	"testing"
)

func option(key string, kind ValueKind, value []byte) Options {
	return AppendOption(nil, key, kind, value)
}

func textOption(key, value string) Options { return option(key, KindString, []byte(value)) }

func u64Option(key string, value uint64) Options {
	return option(key, KindUint64, appendU64(nil, value))
}

// Each row is one entry of create topic: what it is refused with, or what it is stored as.
func TestTopicOptionValues(t *testing.T) {
	u64 := func(v uint64) []byte { return appendU64(nil, v) }
	u32 := func(v uint32) []byte { return appendU32(nil, v) }
	dropped := Options(nil)
	for _, row := range []struct {
		name   string
		sent   Options
		stored Options
		err    error
	}{
		{"expiry", u64Option(OptionMessageExpiry, 5), u64Option(OptionMessageExpiry, 5), nil},
		{"expiry 0", u64Option(OptionMessageExpiry, 0), dropped, nil},
		{"expiry text", textOption(OptionMessageExpiry, "1h 30m"), u64Option(OptionMessageExpiry, 5400e6), nil},
		{"expiry days", textOption(OptionMessageExpiry, "7 days"), u64Option(OptionMessageExpiry, 604800e6), nil},
		{"expiry none", textOption(OptionMessageExpiry, "none"), u64Option(OptionMessageExpiry, Unlimited), nil},
		{"expiry unlimited", textOption(OptionMessageExpiry, "unlimited"), u64Option(OptionMessageExpiry, Unlimited), nil},
		{"expiry never", textOption(OptionMessageExpiry, "never_expire"), u64Option(OptionMessageExpiry, Unlimited), nil},
		{"expiry default", textOption(OptionMessageExpiry, "default"), dropped, nil},
		{"expiry server_default", textOption(OptionMessageExpiry, "server_default"), dropped, nil},
		{"expiry word in capitals", textOption(OptionMessageExpiry, "Never_Expire"), nil, CodeInvalidOptionValue},
		{"expiry no duration", textOption(OptionMessageExpiry, "soon"), nil, CodeInvalidOptionValue},
		{"expiry of 4 bytes", option(OptionMessageExpiry, KindUint64, u32(0)), nil, CodeInvalidOptionValue},
		{"expiry as u32", option(OptionMessageExpiry, KindUint32, u32(5)), nil, CodeInvalidOptionValue},
		{"expiry as i64", option(OptionMessageExpiry, KindInt64, u64(5)), nil, CodeInvalidOptionValue},
		{"expiry of an unnamed kind", option(OptionMessageExpiry, 16, u64(0)), nil, CodeInvalidOptionValue},

		{"size text", textOption(OptionMaxTopicSize, "5 GiB"), u64Option(OptionMaxTopicSize, 5<<30), nil},
		{"size unlimited", textOption(OptionMaxTopicSize, "unlimited"), u64Option(OptionMaxTopicSize, Unlimited), nil},
		{"size server_default", textOption(OptionMaxTopicSize, "server_default"), dropped, nil},
		{"size none", textOption(OptionMaxTopicSize, "none"), dropped, nil},
		{"size default", textOption(OptionMaxTopicSize, "default"), nil, CodeInvalidOptionValue},

		{"segment", u64Option(OptionSegmentSize, 1<<20), u64Option(OptionSegmentSize, 1<<20), nil},
		{"segment text", textOption(OptionSegmentSize, "16 MiB"), u64Option(OptionSegmentSize, 16<<20), nil},
		{"segment digits", textOption(OptionSegmentSize, "16777216"), u64Option(OptionSegmentSize, 16<<20), nil},
		{"segment 0", u64Option(OptionSegmentSize, 0), dropped, nil},
		{"segment unlimited", textOption(OptionSegmentSize, "unlimited"), dropped, nil},
		{"segment too small", u64Option(OptionSegmentSize, 1<<20-512), nil, CodeInvalidOptionValue},
		{"segment too large", u64Option(OptionSegmentSize, 1<<30+512), nil, CodeInvalidOptionValue},
		{"segment off 512", u64Option(OptionSegmentSize, 1<<20+1), nil, CodeInvalidOptionValue},
		{"segment no size", textOption(OptionSegmentSize, "big"), nil, CodeInvalidOptionValue},

		{"messages 1", option(OptionMessagesRequiredToSave, KindUint32, u32(1)), option(OptionMessagesRequiredToSave, KindUint32, u32(1)), nil},
		{"messages text", textOption(OptionMessagesRequiredToSave, "77"), option(OptionMessagesRequiredToSave, KindUint32, u32(77)), nil},
		{"messages 0", option(OptionMessagesRequiredToSave, KindUint32, u32(0)), nil, CodeInvalidOptionValue},
		{"messages most", option(OptionMessagesRequiredToSave, KindUint32, u32(1<<24)), option(OptionMessagesRequiredToSave, KindUint32, u32(1<<24)), nil},
		{"messages too many", option(OptionMessagesRequiredToSave, KindUint32, u32(1<<24+1)), nil, CodeInvalidOptionValue},

		{"save size text", textOption(OptionSizeRequiredToSave, "4 KB"), u64Option(OptionSizeRequiredToSave, 4000), nil},
		{"save size 0", u64Option(OptionSizeRequiredToSave, 0), dropped, nil},
		{"save size too large", u64Option(OptionSizeRequiredToSave, 1<<30+1), nil, CodeInvalidOptionValue},

		{"compression code", option(OptionCompression, KindUint8, []byte{2}), textOption(OptionCompression, "gzip"), nil},
		{"compression capitals", textOption(OptionCompression, "GZIP"), textOption(OptionCompression, "gzip"), nil},
		{"compression code 3", option(OptionCompression, KindUint8, []byte{3}), nil, CodeInvalidOptionValue},
		{"compression code 0", option(OptionCompression, KindUint8, []byte{0}), nil, CodeInvalidOptionValue},
		{"compression unknown", textOption(OptionCompression, "zstd"), nil, CodeInvalidOptionValue},

		{"fsync", option(OptionEnforceFsync, KindBool, []byte{1}), option(OptionEnforceFsync, KindBool, []byte{1}), nil},
		{"fsync text", textOption(OptionEnforceFsync, "false"), option(OptionEnforceFsync, KindBool, []byte{0}), nil},
		{"fsync 2", option(OptionEnforceFsync, KindBool, []byte{2}), nil, CodeInvalidOptionValue},
		{"fsync yes", textOption(OptionEnforceFsync, "yes"), nil, CodeInvalidOptionValue},
		{"fsync capitals", textOption(OptionEnforceFsync, "TRUE"), nil, CodeInvalidOptionValue},
		{"preallocate", textOption(OptionPreallocateSegments, "true"), option(OptionPreallocateSegments, KindBool, []byte{1}), nil},

		{"durability", textOption(OptionDurability, "Persisted"), textOption(OptionDurability, "persisted"), nil},
		{"durability default", textOption(OptionDurability, "replicated"), textOption(OptionDurability, "replicated"), nil},
		{"durability raw", option(OptionDurability, KindRaw, []byte("persisted")), nil, CodeInvalidOptionValue},
		{"durability unknown", textOption(OptionDurability, "none"), nil, CodeInvalidOptionValue},
		{"durability with a long s", textOption(OptionDurability, "perſisted"), nil, CodeInvalidOptionValue},
		{"offset durability", textOption(OptionConsumerOffsetDurability, "PERSISTED"), textOption(OptionConsumerOffsetDurability, "persisted"), nil},
		{
			"durability and fsync agree",
			append(textOption(OptionDurability, "persisted"), option(OptionEnforceFsync, KindBool, []byte{1})...),
			append(textOption(OptionDurability, "persisted"), option(OptionEnforceFsync, KindBool, []byte{1})...), nil,
		},
		{
			"durability and fsync differ",
			append(option(OptionEnforceFsync, KindBool, []byte{1}), textOption(OptionDurability, "replicated")...),
			nil, CodeInvalidOptionValue,
		},

		{"unknown key", u64Option("retention", 1), nil, CodeUnsupportedOptionKey},
		{"key in capitals", u64Option("MESSAGE_EXPIRY", 5), nil, CodeUnsupportedOptionKey},
		{"unknown key behind a range", append(u64Option(OptionSegmentSize, 7), u64Option("no_such_key", 1)...), nil, CodeUnsupportedOptionKey},
		{"unknown key behind a form", append(textOption(OptionSegmentSize, "big"), u64Option("no_such_key", 1)...), nil, CodeInvalidOptionValue},
		{"unknown key behind a count", append(option(OptionMessagesRequiredToSave, KindUint32, u32(0)), u64Option("no_such_key", 1)...), nil, CodeInvalidOptionValue},
		{"unknown key first", append(u64Option("no_such_key", 1), u64Option(OptionSegmentSize, 1)...), nil, CodeUnsupportedOptionKey},
	} {
		block, err := DecodeOptions(row.sent)
		if err != nil {
			t.Errorf("%s: no block: %v", row.name, err)
			continue
		}
		o, err := ParseTopicOptions(block)
		if err != row.err {
			t.Errorf("%s: %v, want %v", row.name, err, row.err)
		} else if got := o.AppendExplicit(nil); err == nil && !bytes.Equal(got, row.stored) {
			t.Errorf("%s: stored %q, want %q", row.name, got, row.stored)
		}
	}
}

func TestTopicOptionBounds(t *testing.T) {
	o := DefaultTopicOptions()
	if err := o.Check(MaxPartitions); err != nil {
		t.Error(err)
	}
	o.MaxTopicSize = DefaultSegmentSize - 1
	if err := o.Check(1); err != CodeInvalidTopicSize {
		t.Errorf("size below the segment: %v", err)
	}
	o.MaxTopicSize = DefaultSegmentSize
	if err := o.Check(1); err != nil {
		t.Errorf("size of the segment: %v", err)
	}
	o.Preallocate = true
	if err := o.Check(64); err != nil {
		t.Errorf("64 GiB ahead: %v", err)
	}
	if err := o.Check(65); err != CodeInvalidOptionValue {
		t.Errorf("65 GiB ahead: %v", err)
	}
}

// An update changes what it names, keeps the rest, and stores its entries as they were sent.
func TestTopicUpdate(t *testing.T) {
	stored := append(u64Option(OptionMessageExpiry, 7000000), textOption(OptionDurability, "persisted")...)
	current, err := ParseTopicOptions(stored)
	if err != nil {
		t.Fatal(err)
	}
	sent := slices.Concat(textOption(OptionMaxTopicSize, "2 GiB"), u64Option(OptionMessageExpiry, 0), textOption(OptionCompression, "gzip"))
	updated, err := ParseTopicUpdate(current, sent)
	if err != nil || updated.MessageExpiry != 7000000 || updated.MaxTopicSize != 2<<30 || updated.Compression != CompressionGzip || !updated.Persisted {
		t.Errorf("%+v, %v", updated, err)
	}
	if !updated.SetsMaxTopicSize() || current.SetsMaxTopicSize() {
		t.Error("which update names a topic size")
	}
	want := slices.Concat(
		textOption(OptionCompression, "gzip"), textOption(OptionDurability, "persisted"),
		textOption(OptionMaxTopicSize, "2 GiB"), u64Option(OptionMessageExpiry, 0),
	)
	if got := MergeOptions(nil, stored, sent); !bytes.Equal(got, want) {
		t.Errorf("merged %q, want %q", got, want)
	}
	keyLast := append(textOption(OptionMessageExpiry, "soon"), textOption(OptionSegmentSize, "1 MiB")...)
	if _, err := ParseTopicUpdate(current, keyLast); err != CodeUnsupportedOptionKey {
		t.Errorf("a key of creation behind a bad value: %v", err)
	}
	if _, err := ParseTopicUpdate(current, textOption(OptionMessageExpiry, "soon")); err != CodeInvalidOptionValue {
		t.Errorf("a bad value: %v", err)
	}
	for _, key := range []string{
		OptionSegmentSize, OptionEnforceFsync, OptionDurability, OptionConsumerOffsetDurability, OptionMessagesRequiredToSave,
		OptionSizeRequiredToSave, OptionPreallocateSegments,
	} {
		if _, err := ParseTopicUpdate(current, textOption(key, "1")); err != CodeUnsupportedOptionKey {
			t.Errorf("update of %s: %v", key, err)
		}
	}
}

// Both generations list their own keys, in catalogue order, and derive each other's settings.
func TestTopicCatalogs(t *testing.T) {
	for generation, want := range map[Generation][]string{
		GenerationSnapshot: {
			"compression_algorithm", "message_expiry", "max_topic_size", "segment_size", "enforce_fsync",
			"messages_required_to_save", "size_of_messages_required_to_save", "preallocate_segments",
		},
		GenerationReleased: {
			"compression_algorithm", "message_expiry", "max_topic_size", "segment_size", "durability", "consumer_offset_durability",
			"messages_required_to_save", "size_of_messages_required_to_save", "preallocate_segments",
		},
	} {
		records, err := DecodeOptionCatalog(AppendTopicCatalog(nil, generation))
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, r := range records {
			keys = append(keys, r.Key)
			block := option(r.Key, r.Kind, r.Default)
			if o, err := ParseTopicOptions(block); err != nil || !bytes.Equal(o.AppendExplicit(nil), block) {
				t.Errorf("default of %s: %v", r.Key, err)
			}
			if r.Description == "" {
				t.Errorf("%s has no description", r.Key)
			}
		}
		if !slices.Equal(keys, want) {
			t.Errorf("generation %d lists %v", generation, keys)
		}
	}
	o, err := ParseTopicOptions(textOption(OptionDurability, "persisted"))
	if err != nil {
		t.Fatal(err)
	}
	if p, ok := Options(o.AppendDerived(nil, GenerationSnapshot)).Get(OptionEnforceFsync); !ok || !bytes.Equal(p.Value, []byte{1}) {
		t.Errorf("derived enforce_fsync %+v", p)
	}
	o, err = ParseTopicOptions(option(OptionEnforceFsync, KindBool, []byte{1}))
	if err != nil {
		t.Fatal(err)
	}
	released := Options(o.AppendDerived(nil, GenerationReleased))
	messages, _ := released.Get(OptionDurability)
	offsets, _ := released.Get(OptionConsumerOffsetDurability)
	if string(messages.Value) != "persisted" || string(offsets.Value) != "replicated" {
		t.Errorf("derived durability %q, of offsets %q", messages.Value, offsets.Value)
	}
}

// The released client's two entries, byte for byte (released-clients §2.3).
func TestReleasedDurabilityEntries(t *testing.T) {
	o := DefaultTopicOptions()
	o.explicit = 1<<keyDurability | 1<<keyConsumerOffsetDurability
	want := "\x02\x1a\x00\x00\x00consumer_offset_durability\x02\x0a\x00\x00\x00replicated" +
		"\x02\x0a\x00\x00\x00durability\x02\x0a\x00\x00\x00replicated"
	if got := string(o.AppendExplicit(nil)); got != want || len(got) != 76 {
		t.Errorf("%q", got)
	}
}
