// Package buffer owns the memory that frames live in: one pool per process with one byte budget.
//
// Bytes are taken from the budget before they are read from a socket, so what the process holds
// for its peers never exceeds what it was given. A [Frame] moves from owner to owner; it is counted
// only where it fans out (pipeline, peer queues, tail cache). A frame that nobody releases is safe:
// the collector frees it, its budget comes back and the pool counts a leak. A frame that is released
// too early is the fault this package exists to catch: build with -tags poison and every use after
// release, and every write after [Frame.Freeze], panics.
//
// The package starts no goroutine and knows nothing of what the bytes mean.
package buffer
