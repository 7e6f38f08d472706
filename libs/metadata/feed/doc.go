// Package feed carries the metadata log from the processes that order it to those that follow it:
// front-doors and partition replicas.
//
// A Source, at a metadata replica, owns the recent applied prepares, encoded once for everybody, and
// the snapshot that followers start from, built once for all who need it. It hands out applied ops
// only: what is not committed may still be dropped (design-arguments.md 6). What a follower costs is
// its place in that range and the few pieces of a snapshot it has asked for; one that falls out of
// the range starts anew.
//
// A Client, in the following process, owns the one connection to a source, the metadata.Follower that
// reads it, and the newest View. It picks a source by hash, goes on to the next when one fails, and says
// when nobody has vouched for the view for too long: whoever authorizes requests has to stop then.
//
// How data passes: Apply → Source.Add → Source.Publish → Sink → network → Client.Frame →
// metadata.Follower → Client.View. The package dials nothing and listens on nothing: a Plane is what the
// service plane of a metadata replica serves followers with, and Client.Receive takes what a connection
// to one brings.
package feed
