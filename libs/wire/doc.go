// Package wire is the protocol: every frame, header and body that clients and replicas exchange, as
// Go types with an encoder and a decoder each.
//
// It owns bytes and nothing else. It does no I/O, reads no clock, starts no goroutine and keeps no
// state. What a value means (who may send it, what it does) belongs to the packages that use it.
//
// Two halves share the package. Frames: the thirty 256-byte headers, commands, operations, and what
// only replicas say to each other. Bodies: what stands behind a header on the client plane, from
// identifiers and options to batches of messages, with the error codes of replies.
//
// Decoding takes a slice and returns a value whose byte slices alias it: they live as long as the
// frame's buffer and must be copied to be kept. A decoder never panics on remote input, never
// allocates more than the input's length justifies and trusts no length or count field. A request
// body that does not decode gives CodeInvalidCommand; the caller picks the answer its command calls
// for. Encoding appends to a slice and returns it, so that a caller with a buffer of the right size
// allocates nothing. Encoders trust their caller to have bounded names to 255 bytes.
//
// README.md says which file holds what. Layouts are little-endian; the pages named in comments
// (client-wire, replica-wire, released-clients) are the protocol reference.
package wire
