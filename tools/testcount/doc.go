// Command testcount reads the output of "go test -json" and shows what a person wants of it: one
// line per package, the output of what failed, the reasons of what was skipped. It keeps the counts
// of several runs in one file and prints their total as the closing line of the whole suite.
//
//	go test -json ./... | testcount record FILE   shows the run, adds its counts to FILE
//	testcount add FILE NAME STATUS                adds one check that is no go test; STATUS 0 passed
//	testcount lines FILE NAME                     adds a run whose output ends in "N passed, N failed"
//	testcount total FILE                          prints "N passed, N failed, N skipped"
//
// It exits 1 where something failed, or where nothing ran at all.
package main
