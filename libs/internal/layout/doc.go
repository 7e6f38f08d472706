// Package layout holds tests of the repository itself: which package may import which, what the
// deterministic packages may not use, and what every package must have. It has no code of its own.
//
// The tests read the source of all three modules from the work tree. A rule that needs types loads
// them from the export data of the Go tool.
package layout
