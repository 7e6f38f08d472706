// Package link is how the roles and members of a cluster reach each other: as a method call in one
// process, over authenticated connections between processes.
//
// It owns the shape of a request on its way ([Call]) and of the roles that answer ([Service]); the proof of
// who is at the other end of a connection (TLS, handshake, first frame); which frames may pass there; and
// the queues, lanes and reconnects between processes. It never decides anything about a request, never
// retries one, and never reads what stands behind a header except on its own service plane.
//
// There are two planes. The replica plane ([Mesh]) carries frames between members of groups: whatever
// arrives is handed over with the node id that the connection proved, whatever cannot be sent is dropped
// and counted, and the consensus core repairs it. The service plane ([Remote], [Server]) carries calls: each
// ends exactly once, with an answer or with a status that says whether it may have been executed; and the
// feed by which followers learn of metadata ([Feed]).
//
// How bytes pass: a sender queues a frame with its connection; header and small bodies are copied into the
// queue, large ones are borrowed from their buffer. One goroutine per connection writes what has gathered
// with one vectored write, urgent frames first. One goroutine reads: the size of a frame is taken from the
// process's buffer budget before its body is read, and the receiver gets the frame to keep. Nothing is
// allocated for a frame or a call.
//
// A front-door connection owns one Call and reuses it: Serve gives it away, Finish gives it back.
//
// Files: node.go, secret.go, tls.go, handshake.go, introduce.go are who is there; options.go and dialing.go
// how a connection is made; stream.go, outbound.go, writer.go, plane.go how it runs; mesh*.go, lane.go the
// replica plane; remote.go, line.go the asking side and server.go, conn.go, served.go, feed.go the answering
// side of the service plane, callframe.go what a call looks like there.
package link
