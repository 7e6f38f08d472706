// Package dashboard holds the dashboards of the cluster as tables, and writes them as Grafana reads them.
//
// A dashboard is rows of panels, a panel one or several queries with a legend. What Grafana needs besides, such as
// places and identifiers, follows from the order. The files in deploy/grafana/dashboards are generated: change the
// tables and run make generate.
//
// It never talks to Grafana or Prometheus.
package dashboard
