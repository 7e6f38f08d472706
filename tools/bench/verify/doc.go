// Package verify proves that a server keeps what it acknowledged.
//
// A Recorder produces mixed load (payloads of one byte to eight mebibytes, several topics with small
// segments, purges, stored offsets, group members, short-lived streams), survives the server's
// death, and writes every acknowledgement to a Ledger, one line each, in the order of arrival. What
// needs an answer but got none is noted before it is sent, so that either outcome is accepted later.
//
// A Model is what a ledger implies: for each partition which message stands at which offset, for
// each consumer which offset is stored, which streams exist. Check reads everything back and
// compares: each acknowledged message is there once, unchanged, at its offset; no offset ever
// denotes two messages, also of those never acknowledged but once read; purged messages stay away;
// acknowledged offsets and streams are there.
//
// Messages describe themselves: the id holds the run and a number that is never used twice, and the
// payload follows from that number, so every message on a server can be judged without its
// acknowledgement. Nothing is ever sent again: a message that shows up twice is a fault.
package verify
