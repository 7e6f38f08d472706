package wire

// StreamTarget is the body of get, delete and purge stream and of get topics.
type StreamTarget struct{ Stream Identifier }

// DecodeStreamTarget reads a StreamTarget; bytes behind it are ignored.
func DecodeStreamTarget(b []byte) (StreamTarget, error) {
	r := reader{rest: b}
	t := StreamTarget{Stream: r.identifier()}
	return t, r.err()
}

// Append writes t's wire form behind dst.
func (t StreamTarget) Append(dst []byte) []byte { return t.Stream.Append(dst) }

// CreateStreamRequest is name8 and an options block to the end (client-wire §9).
type CreateStreamRequest struct {
	Name    []byte
	Options Options // no key is defined for streams: any is refused with CodeUnsupportedOptionKey
}

// DecodeCreateStream reads a CreateStreamRequest, which must fill b.
func DecodeCreateStream(b []byte) (CreateStreamRequest, error) {
	r := reader{rest: b}
	q := CreateStreamRequest{Name: r.name8(), Options: r.options()}
	return q, r.err()
}

// Append writes q's wire form behind dst.
func (q CreateStreamRequest) Append(dst []byte) []byte {
	return append(appendStr8(dst, q.Name), q.Options...)
}

// UpdateStreamRequest renames a stream.
type UpdateStreamRequest struct {
	Stream  Identifier
	Name    []byte
	Options Options // as in CreateStreamRequest
}

// DecodeUpdateStream reads an UpdateStreamRequest, which must fill b.
func DecodeUpdateStream(b []byte) (UpdateStreamRequest, error) {
	r := reader{rest: b}
	q := UpdateStreamRequest{Stream: r.identifier(), Name: r.name8(), Options: r.options()}
	return q, r.err()
}

// Append writes q's wire form behind dst.
func (q UpdateStreamRequest) Append(dst []byte) []byte {
	return append(appendStr8(q.Stream.Append(dst), q.Name), q.Options...)
}
