// Package compose tests what people run: the cluster of compose.yaml on a real Docker engine, brought up and
// taken away by the commands they use, its containers killed, paused, cut off and upgraded while clients work.
//
// A project (project_test.go) is one cluster with a name, ports and secrets of its own, so that it gets along
// with a cluster that runs already. It is driven by deploy/compose/run, as "make up" is, and by docker; it looks
// into a container over the container's own loopback, for what is not published.
//
// The tests need a Docker engine, docker-compose or the plugin, and root. Without they are skipped, and say so;
// with CI=true they fail instead. .ci/engine starts an engine. With flags the same tests are long campaigns:
//
//	go test ./compose -all -window 3s -upgrades 2 -v
//	go test ./compose -run TestUnderLoad -blow paused -v
package compose
