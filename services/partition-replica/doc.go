// Package partitionreplica hosts partition groups: it stores messages and consumer offsets,
// serves polls and owns retention.
//
// It owns, per partition, a state machine driven by a loop (Partition) and, per process, the
// service in front of them (Replica). It never decides what exists: streams, topics and consumer
// groups come from the metadata view it follows, and a partition's files go only when that view
// proves a delete.
//
// How data passes: a SendMessages call carries a verified batch in a pooled frame; Admit lets it
// in, Stage stamps offset, time and checksum in place and gives it to the segment log, Apply makes
// it committed and answers with the base offset. Polls never enter the loop: they run on the
// caller's goroutine against the published segment view. Consumer offsets, purges and trims are
// ops in the partition's own log, so replicas agree on them.
package partitionreplica
