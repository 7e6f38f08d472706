// Package conformance replays recorded conversations against a server and judges every answer.
//
// The recordings under transcripts/ are ground truth for the client plane: one file per scenario,
// one step per line, in the format transcripts/README.md describes. The package owns reading that
// format, sending the frames over TCP, WebSocket or QUIC, judging the answers, and bringing a server
// to the state a scenario expects: empty, or one of its own that nobody used before. A server is one
// process, or a cluster of them that is spoken to at one front-door or node.
//
// It speaks in raw bytes and imports no codec of this project, so that a mistake made twice (once
// in the server, once in a codec) still shows.
//
// Data flows one way: Load turns a file into a Scenario, a Player runs it against a Server and
// returns a Verdict, Run orders many scenarios over several lanes and collects a Report.
package conformance
