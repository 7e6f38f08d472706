// Package metadatareplica hosts the metadata group: it orders every change of streams, topics,
// partitions, users, tokens, consumer groups and client sessions, and publishes the resulting
// immutable views.
//
// It owns the machine between the loop and the pure state machine of libs/metadata, and the duties
// that belong to the metadata primary alone: where new partitions go, which id a node gets, expired
// tokens, revocations that are over, sessions nobody claims, nodes that are gone. It never talks to
// clients: requests arrive as link.Calls from front-doors that have already authenticated them.
//
// How data passes: Serve → loop → Admit (client table, static checks, rewriting into the logged
// form) → prepare, synced → Apply → Settle publishes the new view → the call is finished. In one
// process the published view is the front-door's and the partitions' follower; other processes follow
// through the feed.
package metadatareplica
