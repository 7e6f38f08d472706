// Package frontdoor is where clients of the binary protocol arrive: TCP and TLS listeners, logins,
// sessions, authorization, routing, every client command.
//
// It owns connections, the binding of a connection to a session, the numbers a connection gives its
// partition writes, and the only retrying in the cluster. It owns no data: it reads metadata from the
// follower it is given and hands ordered requests, sends, polls and offsets to the roles behind
// [link.Service]. Passwords and tokens end here; only their hashes travel on.
//
// How a request passes: the connection's goroutine reads one frame (its bytes taken from the buffer
// budget first) and gives it to its [Session]. The session, which touches no socket, clock or
// goroutine, answers at once or names an action: call a service, pause, verify a password, fetch
// partition facts, wait for the follower. The connection performs it and resumes the session until
// there is a reply, which leaves with one write. Requests of a connection are answered one at a time
// and in order.
//
// Large sends wait for their turn before their bodies are read (gate.go, room.go), so that an overloaded
// partition costs its clients time and this process no memory. What gets no turn in time is thrown away
// unread and answered 58.
//
// In a cluster a [routing.Router] finds the primaries, and a refused call is repeated here and nowhere else. What the own view lacks or forbids is denied only after a
// read-index at the metadata primary, and nothing is authorized from a view that nobody has vouched for
// lately.
//
// It never drops a request in silence. What the reference leaves unanswered gets a status: 3 for a
// frame that is none, the batch's own code for a bad batch, 58 for what may be sent again.
package frontdoor
