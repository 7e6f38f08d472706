// Package cluster tests whole clusters of real processes under load: each process killed, stopped,
// restarted, all at once, while clients work. What it asks for is what people are promised: nothing
// acknowledged is lost or doubled, no offset means two messages, and a dead process costs less than a
// second.
//
// The tests start clusters with package local, load them with the recorder of the verifier, and read
// everything back. With flags the same tests are long campaigns:
//
//	go test ./cluster -run TestKill -rounds 50
//	go test ./cluster -run TestKill -rounds 50 -official DIRECTORY
//	go test ./cluster -run TestGap -gap 3s -v
//	go test ./cluster -run TestLoginStorm -storm 5000 -v
//	go test ./cluster -run TestOverload -overload 1000 -v
//	go test ./cluster -run TestIdlePartitions -partitions 10000 -v -profiles DIRECTORY
//	go test ./cluster -run TestControlPlaneDies -nats-down 1m -v
//
// The tests that look at times log a table. A lane of pings, which need nothing but their front-door, shows what
// of it is the machine's doing.
//
// TestBadNetwork puts each member into a network namespace of its own, with a network in between that loses,
// delays and cuts in one direction or both (network_test.go). Who leads is put on one side of a cut, with nodes that
// serve clients on both (nemesis_test.go). Clients stay with one node each, some of them only read, and write down
// what they see (history_test.go, clients_test.go); log_test.go, register_test.go and linear_test.go decide whether
// that is what people are promised. It needs root, /dev/net/tun and the program ip, and is skipped without:
//
//	go test ./cluster -run TestBadNetwork -bad-network 20m
package cluster
