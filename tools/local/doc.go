// Package local runs a whole cluster as real processes on loopback, without containers: three services
// or all-role nodes, each with its own data directory, until it is told to stop them.
//
// It owns the directory it is given: cluster.json, which says what runs there, and one directory per
// process with its data and its log. A process outlives the command that started it; cluster.json
// finds it again. It looks into a data directory only for runtime/current_config.toml, where a
// process publishes the addresses it bound.
//
// Up writes cluster.json and starts everything at once; processes find each other by the addresses in
// it, which were free when the cluster was made.
package local
