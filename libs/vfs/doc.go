// Package vfs is the file system under every durable byte of the project: the operating system's
// ([NewOS]) or a seeded one in memory that can be killed, cut from power and made to fail ([NewMem]).
//
// It knows nothing of what the files mean. Code above it never imports os, so that each storage
// rule can be tested at every single write and sync.
package vfs
