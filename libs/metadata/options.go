package metadata

import "github.com/whippet-mq/whippet/libs/wire"

// configure sets explicit options and settings of a new topic from the logged blocks. Every key that the
// client left open stands in the derived block with the default the primary took, so that replicas
// never consult their own.
func (t *Topic) configure(explicit, derived []byte) wire.Code {
	e, err := wire.DecodeOptions(explicit)
	if err != nil {
		return wire.CodeInvalidOptionValue
	}
	d, err := wire.DecodeOptions(derived)
	if err != nil {
		return wire.CodeInvalidOptionValue
	}
	if t.Settings, err = settings(e, d); err != nil {
		return wire.CodeInvalidOptionValue
	}
	t.Explicit = e.AppendSorted(nil)
	return 0
}

// settings reads the explicit options, and for keys that are not among them the derived ones.
func settings(explicit, derived wire.Options) (wire.TopicOptions, error) {
	s, err := wire.ParseTopicOptions(explicit)
	if err != nil {
		return s, err
	}
	d, err := wire.ParseTopicOptions(derived)
	if err != nil {
		return s, err
	}
	open := func(key string) bool {
		_, named := explicit.Get(key)
		return !named
	}
	if open(wire.OptionCompression) {
		s.Compression = d.Compression
	}
	if open(wire.OptionMessageExpiry) {
		s.MessageExpiry = d.MessageExpiry
	}
	if open(wire.OptionMaxTopicSize) {
		s.MaxTopicSize = d.MaxTopicSize
	}
	if open(wire.OptionSegmentSize) {
		s.SegmentSize = d.SegmentSize
	}
	if open(wire.OptionEnforceFsync) && open(wire.OptionDurability) {
		s.Persisted = d.Persisted
	}
	if open(wire.OptionConsumerOffsetDurability) {
		s.OffsetsPersist = d.OffsetsPersist
	}
	if open(wire.OptionMessagesRequiredToSave) {
		s.MessagesToSave = d.MessagesToSave
	}
	if open(wire.OptionSizeRequiredToSave) {
		s.SizeToSave = d.SizeToSave
	}
	if open(wire.OptionPreallocateSegments) {
		s.Preallocate = d.Preallocate
	}
	return s, nil
}

// Derived lists, sorted, the option keys that clients of generation g know and none has named, with
// the values in force.
func (t *Topic) Derived(g wire.Generation) wire.Options {
	// A literal 0 of an update is named and stored although it changed no setting.
	return without(t.Settings.AppendDerived(nil, g), t.Explicit)
}

// without is options less the keys that others names.
func without(options, others wire.Options) wire.Options {
	if len(others) == 0 {
		return options
	}
	var left wire.Options
	for o := range options.All() {
		if _, named := others.Get(string(o.Key)); !named {
			left = o.Append(left)
		}
	}
	return left
}
