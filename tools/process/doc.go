// Package process runs real server processes on loopback for tests and tools: each with its own
// data directory and free ports, started until it is ready, stopped in order or killed, and
// started again on the same data.
//
// It never looks into the data directory except for runtime/current_config.toml, where a server
// publishes the addresses it bound.
package process
