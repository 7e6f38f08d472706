// Package cluster tests whole clusters of real processes under load: each process killed, stopped,
// restarted, all at once, while clients work. What it asks for is what people are promised: nothing
// acknowledged is lost or doubled, no offset means two messages, and a dead process costs less than a
// second.
//
// The tests start clusters with package local, load them with the recorder of the verifier, and read
// everything back. With flags the same tests are long campaigns:
//
//	go test ./cluster -run TestKill -rounds 50
package cluster
