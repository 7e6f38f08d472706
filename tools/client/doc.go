// Package client is a small client of the client plane for this project's tools and tests.
//
// It owns one connection: dialling over TCP or TLS, login by password or token, request numbers,
// the retry of transient refusals (57 and 58) that the official SDKs perform, and every command as
// a method. It never reconnects, never runs requests in parallel and never starts a goroutine: a
// Client serves one goroutine at a time, and a broken connection ends it.
//
// A method encodes its request behind a reserved header in the client's own buffer, one write sends
// it, the reply lands in a second buffer, and the result decodes from there. Results that hold byte
// slices alias that buffer: they are valid until the next call. Send and Poll reuse both buffers and
// allocate nothing once these have grown.
//
// Refusals are errors: a wire.Code from a status or a result section, an *Evicted when the server
// ended the session. Other errors are about the connection, and the Client is of no further use.
package client
