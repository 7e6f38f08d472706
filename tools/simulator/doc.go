// Package simulator runs whole consensus groups in one thread from one seed: several nodes, each with
// several groups over one shared log, clients that retry, a network and disks that fail in every way
// the design has a rule for.
//
// It owns virtual time, the network, the disks, the processes and the reference model. The decisions it
// tests are those of libs/vsr, driven through Step exactly as a server drives it: frames are encoded to
// bytes and decoded on arrival, completions come when the modelled disk has done the work, a restart
// sees what the disk kept. It uses no clock, no goroutine and no random source but its seed, so that
// the same seed is the same run, byte for byte: Result.Hash is the chain of every event of it.
//
// Data passes like this: a Config is drawn from the seed (config.go), a world runs it (world.go), nodes
// hold members (node.go, member.go), frames cross links (network.go), records reach disks (disk.go), and
// after every step the history (history*.go) compares what happened with what may happen. The first
// broken rule ends the run with its name.
//
// README.md lists the rules, where each is checked, and the commands.
package simulator
