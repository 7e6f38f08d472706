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
package loop
