// Package pulse is the liveness of the nodes of a native cluster: who is heard, who is dead, and whether
// this node may lead, as one pure state machine per process. Groups have no timers for it: ten
// thousand idle groups cost what one pair of nodes costs.
//
// A Pulse turns inputs (a Ping or Pong of a peer, time, a new set of peers) into frames to send and
// events. It owns no socket, clock or group: like package vsr it is a function of its inputs, imports
// wire only and ranges over no map.
//
// # How a death is noticed
//
// A Ping goes to every peer each Interval and carries the process epoch, a progress counter per loop,
// and what its sender hears of everybody else. A node suspects a peer that sent no Ping for DeadAfter,
// and a loop of it whose counter stands still for StuckAfter while Pings come. It tells its own
// suspicion to everybody at once; the suspicion becomes a death ([EventDead], [EventLoopDead]) when
// enough others report that they do not hear that node, loop and epoch either (pre-vote). So a link
// that is cut one way, or a node that has just started, deposes nobody. A new epoch is the death of
// the process before, whoever hears it.
//
// A node that was paused itself gives peers catchUp to be heard again before it suspects them.
//
// # What it allows
//
// A Pong echoes the send time of its Ping. A primary serves while enough members have echoed a Ping of
// the last EchoLimit ([Pulse.Serving]); a member joins no view change before Quiet has passed since
// the last Ping it received from the primary ([Pulse.MayVote]). Quiet exceeds EchoLimit, so the one
// has stopped before the others can replace it, as long as clocks run at the same rate. Safety of the
// log rests on none of this.
//
// design-arguments 14 and 20 have the reasons.
package pulse
