// Package observe tests what people watch a cluster with: dashboards, recording rules, alerts and their pages.
//
// A cluster of processes works under load, a real Prometheus scrapes it with the configuration that is deployed
// (other targets, shorter intervals), and everything that names a metric is compared with what is really there:
//
//	go test ./observe -run TestPanels -v             # panels, rules and documents; prints how many
//	go test ./observe -run TestPanels -args -pictures ../../deploy/docs/pictures
//	go test ./observe -run TestDrills -v -args -drills  # alerts are caused, fire and clear; prints a table
//
// Without the programs prometheus and promtool on the path these tests are skipped.
package observe
