// Package chart tests the Helm chart of deploy/helm: it is linted and rendered as Helm does it, with the values of
// people who want it small, encrypted or watched, and what comes out is read as the Kubernetes types it should be.
//
// Each container's environment is loaded by the configuration of the services themselves, for each pod of a
// StatefulSet: names that are no settings, addresses that differ from ports and probes, and ids that are not in the
// roster are found without a cluster.
package chart
