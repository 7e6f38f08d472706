// Package operations holds tests of what the pages in deploy/docs promise to the people who run
// Whippet: start, stop, ports, credentials, backup, metrics, exit codes. It has no code of its own.
//
// Every test runs real server processes built from this tree, each on its own data directory and
// free ports.
package operations
