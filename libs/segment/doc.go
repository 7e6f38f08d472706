// Package segment owns the messages of one partition: its segment files, their indexes and the
// view that polls read.
package segment
