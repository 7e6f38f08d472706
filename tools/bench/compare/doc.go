// Package compare measures a server against the floor program, job by job, in the same run and with
// the same client, and prints ratios: the only figures that travel between machines.
//
// Each job starts both programs afresh on empty directories, in turn, several rounds, and takes
// medians. Processor time of the server process is read as well, and the heap allocations per
// message from its metrics.
package compare
