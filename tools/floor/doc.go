// Package floor is the least a broker of this protocol can do: the denominator of every performance
// figure.
//
// It reads a frame, writes the batch to a file with one write, optionally syncs, and answers; a poll
// is a range read of one file and one write to the socket. Nothing is verified, hashed, replicated
// or recovered, and nothing survives: what remains is loopback, page cache and disk. It speaks just
// enough of the client plane for whippet-bench, so that the same client measures both sides of a
// ratio.
package floor
