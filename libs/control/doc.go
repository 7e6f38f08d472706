// Package control is what a cluster tells people about itself: events and figures of every process, over NATS
// or inside one process.
//
// It owns the subjects and payloads (subjects.go is the one list of them), the publisher of a process, and the
// ways its messages go: [Local] to listeners in the same process and at its ops port, [NATS] to everybody.
//
// Nothing waits for it and nothing depends on it. Whoever has something to say calls [Publisher.Say], which
// notes it and returns: no channel, no socket, one short lock. What is alike is counted instead of repeated, what
// has no room replaces what is oldest. One goroutine sends what was noted, at most one message in 100 ms; it alone
// may have to wait for a socket. Loss, restart and partition of NATS change nothing but how fresh the picture is:
// a message that can not be sent is dropped and counted, never kept for later.
//
// It never decides anything: addresses, views and placement come from the metadata and from the members of a
// group, never from here.
package control
