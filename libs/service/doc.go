// Package service is what every Whippet process has around its work: configuration, logging, the
// ops endpoint, signals, the graceful stop and the exit code.
//
// It owns the settings ([Config]: defaults, then the TOML file, then the environment, then flags),
// the one logger ([NewLogger]), the metrics registry with its HTTP endpoint ([Ops]) and the life of
// the process ([Run]). A program hands Run one function; Run calls it with a [Runtime] and cancels
// its context when the process shall end.
//
// It never touches durable data except three small files under the data directory that people and
// tools read: root-password, runtime/current_config.toml and their directory. It knows no frame, no
// group and no listener of the client plane. Secrets pass through it as [Secret], which no
// formatter, encoder or logger prints.
package service
