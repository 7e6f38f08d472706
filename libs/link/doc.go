// Package link carries routed requests between the roles of a cluster: the service plane's Request
// and Reply as one Call object within a process.
//
// It owns the shape of a request on its way (Call), of the roles that answer (Service) and of the
// facts partition replicas tell (Fact). It never decides anything about a request and never copies
// a payload: a Call's frame changes hands.
//
// A front-door connection owns one Call and reuses it: Serve gives it away, Finish gives it back.
package link
