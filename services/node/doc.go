// Package node puts the roles of a process together: data directory, restart evidence, logs, links to
// other processes, and the roles on top of them, started from the log up and stopped from the sockets
// down.
//
// It owns the order of things at start and stop and nothing else: what a role does is the role's
// package. The same assembly serves every arrangement; a process differs from another one by its
// Roles.
package node
