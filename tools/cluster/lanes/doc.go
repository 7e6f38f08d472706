// Package lanes is steady load that notices gaps: clients that ask for the same thing at a fixed rate while
// something happens to a cluster, and what each kind of request had to wait meanwhile.
//
// It owns its clients and their connections. It never looks into a cluster: it knows the addresses clients
// connect to, and is told when one of them is about to go. A connection that ends is made again at once,
// elsewhere if its door is shut; what was asked on it is asked again, and the gap goes on until an answer. An
// answer that says no is an error, and counted.
//
// New, Add for each lane, Start; Still ends it, and then Look says what was seen in a window of time.
package lanes
