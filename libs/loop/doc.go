// Package loop runs consensus groups: one event loop owns a set of groups, steps their vsr cores,
// keeps their uncommitted prepares and feeds one shared journal.
//
// It owns the order of things between the pure core (libs/vsr), the log (libs/journal) and a
// group's state machine (Machine). It never touches the file system, the clock or the network by
// itself: time, randomness, rounds and background work leave through Env, completions come back as
// events. Runner, the only file with goroutines, drives a Loop in a process; the simulator calls
// Turn directly.
//
// How a write passes: a Call enters the inbox; Turn lets the machine admit it, the core gives it an
// op number, the machine stages the body (stamps it), and the prepare joins the turn's round. The
// round's completion is an event like any other: it steps the core, which moves the commit point;
// the machine applies, publishes, and only then is the Call finished. One turn submits at most two
// rounds (one that waits for a sync, one that does not), whatever the number of groups touched.
//
// # Groups of several members
//
// A group whose Spec names nodes has peers (peering). Frames of other nodes are events too: their bodies
// are verified on the goroutine that read them, the core decides, and what it appends is staged by
// Machine.Follow and joins the round like a prepare of its own. What else a core asks for is carried out
// by carry: the log is cut (truncate), a view's log is taken on durably (adopt), promises are saved
// (votes, one sync a turn for all groups), frames leave (send), members that repair their logs are served
// from memory or from the journal (serve), state is fetched by the host (transfer).
//
// What is never done: nothing is applied, and so no buffer is given back, before its own round is
// complete; no completion of an op that was cut reaches the core (clip); nothing of a new group is
// acknowledged before its first vote is saved; no checkpoint lets go of records that are not applied.
//
// Nodes live and die for the whole process (NodeDead, NodeAlive, Echoes). Only groups that are led by such
// a node, or work on something, are told at once; an idle group learns of it when it next does. A group
// is in the heap of timers only while its core asks for time.
package loop
