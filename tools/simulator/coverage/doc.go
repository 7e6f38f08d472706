// Package coverage tells which branches of the consensus core a campaign of the simulator never took.
//
// The core has no counters for it: the simulator is built with the coverage instrumentation of the Go
// tool, runs its seeds, and every block of the core's decisions has to be reached, but for those in
// Known, each with the reason.
package coverage
