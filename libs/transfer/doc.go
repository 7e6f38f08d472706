// Package transfer moves the state of a group from one member to another when the log no longer reaches
// back to what the other one lacks: an offer with a manifest, pieces on request, a checksum for each
// artifact (replica-wire.md §9; frames 22 to 25).
//
// It owns the protocol, its goroutines and its bounds: how many offers are built and kept, how much is on
// its way, when a silent peer is given up, how soon a failed fetch is tried again. It never decides what a
// state is: a Source is given an Offer of bytes and immutable files, a Fetch hands them to a Store, and
// installing them is the group's business. An Exchange is both for one process.
//
// Between members of Whippet the first artifact is the group's image as a checkpoint holds it, behind
// the header of the last prepare in it; files follow in the image's order. The receiver asks for a few
// pieces ahead and takes them in order only: a lost one is asked for again with all behind it.
package transfer
