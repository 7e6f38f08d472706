// Package httpapi serves the HTTP/JSON interface of a front-door: 47 routes over HTTP/1.1 and HTTP/2.
//
// It owns what is HTTP alone: paths, JSON, bearer tokens, cross-origin headers, limits of bodies and
// of writes in flight. It owns no command: each handler turns a request into the body of a command of
// the binary protocol, has the front-door perform it for the caller's user ([Commands]), and turns
// the answer into JSON. So authorization, routing and repeats are the same on every transport.
//
// How a request passes: cross-origin headers, then the path and the method, then the credential, then
// path and query, then the body (its bytes taken from the buffer budget before they are read), then
// the command. The answer is encoded as a whole before its first byte is written, and what the
// command held is given back before a slow reader could keep it.
//
// Callers have no connection. A bearer token names a user; nothing else is remembered between two
// requests, and another front-door with the same signing key takes the same token.
package httpapi
