// Package routing finds, for a request to a consensus group, the process that leads it.
//
// It owns what one process has learned of primaries: members come from the metadata, views from
// refusals. It never dials, never repeats a call and never asks for hints; a wrong guess costs one
// refusal, which brings the next guess.
//
// How a call passes: its group → members → the member that leads the newest view heard of → the service
// that reaches this node. The caller tells the router of refusals and decides whether to try again.
package routing
