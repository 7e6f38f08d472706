// Package placement plans where partitions should be, and names what an operator and the metadata primary say to
// each other about it.
//
// It owns the plan: a pure function of the nodes and the member lists as they are. It never moves anything and never
// decides who holds a new partition: the metadata primary does.
//
// A Cluster comes from the primary as JSON (Command "status"); Rebalance and Drain make a Plan of it; each Move of a Plan
// goes back as a Command, one after the other, and the next status shows how far it is.
package placement
