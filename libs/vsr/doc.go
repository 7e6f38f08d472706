// Package vsr is the consensus core: Viewstamped Replication of one group's log as a pure state
// machine.
//
// A Replica turns inputs (a request, a frame of a peer, a completion of the journal, a tick) into
// outputs (prepares to append, frames to send, a commit point). It holds numbers and headers, never
// bodies: a body is a token of the caller. It has no clock, no disk, no socket, no goroutine, no
// random source and ranges over no map; all of these come in through Input, so a run is a function of
// its inputs.
//
// No effect of one Output waits for another effect of it. What must follow durability is produced by
// the Step that learns of the durability. The caller may therefore perform the effects of an Output
// in any order between slices; only the order inside a slice, and Truncate before Append, is binding.
//
// A group runs through four states that the code names after the protocol: normal operation, a view change
// (proposals, votes, merge), taking on the log of a view, and recovery after a restart. Repair fetches what
// a member lacks in any of them.
//
// README.md has the glossary, the message table and what must be durable before what.
package vsr
