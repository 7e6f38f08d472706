// Package floor is the least a broker of this protocol can do: the denominator of every performance
// figure.
//
// It reads a frame, writes the batch to a file with one write, optionally syncs, and answers; a poll
// is a range read of one file and one write to the socket. Nothing is verified, hashed, replicated
// or recovered, and nothing survives: what remains is loopback, page cache and disk. It speaks just
// enough of the client plane for whippet-bench, so that the same client measures both sides of a
// ratio.
//
// Where writes are synced there is one log for all partitions, as there is one journal in the server, with
// records as long as the server's. "One sync per write" is a server without group commit: requests
// come over as many connections, one after another is written and synced, and answered at once. It
// does so in a log that grows, as an ordinary one does, and, as a mode of its own, in one whose blocks
// were written before, as the server's are: there a sync is up to 1.7 times as fast. One goroutine that
// writes in place of a lock measured no different.
package floor
