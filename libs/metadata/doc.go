// Package metadata is the metadata state machine: streams, topics, partitions, users, tokens,
// permissions, consumer groups and the client table.
//
// It owns what these objects are and how every operation of the metadata log changes them. It never
// does I/O, reads no clock, draws no random number and starts no goroutine; times, placements,
// password hashes and token hashes come in with the operation. So every replica and every follower that
// applies the same log has the same state and answers with the same bytes.
//
// A View is the state after one operation. Views are immutable and share structure, so Apply costs
// O(log n), old views stay valid, and any goroutine may read one without a lock.
//
// A request passes through four functions. Check refuses with a status what needs no log: bodies that
// do not decode, options, static bounds; the front-door runs it. Preflight, at the primary, looks the
// request number up in the client table. Admit checks again and rewrites the request into the form that
// is logged, with the decisions that must not be taken twice: placement, in-flight partitions, trim
// offset. Apply executes the committed form: it resolves, then tests the permission, then the rules,
// and returns the next View with the committed reply.
//
// EncodeSnapshot and DecodeSnapshot carry a View through a checkpoint.
package metadata
