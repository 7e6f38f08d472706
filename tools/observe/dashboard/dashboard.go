package dashboard

//go:generate go run ../cmd/dashboards ../../../deploy/grafana/dashboards

// Source is the identifier of the Prometheus data source that deploy/grafana/provisioning makes.
const Source = "whippet-prometheus"

// Dashboard is one page.
type Dashboard struct {
	File  string // name without extension, and identifier
	Title string
	About string
	Rows  []Row
}

// Row is a titled group of panels.
type Row struct {
	Title  string
	Panels []Panel
}

// Panel shows queries over one another, or as figures.
type Panel struct {
	Title   string
	About   string // what it says when it is not obvious
	Unit    Unit
	Figures bool // the last values as numbers instead of curves
	Queries []Query
}

// Query is an expression; {{label}} in a legend is the value of a label.
type Query struct{ Expr, Legend string }

// Unit of the values, in Grafana's names.
type Unit string

// Units in use.
const (
	Number         Unit = "short"
	Seconds        Unit = "s"
	Bytes          Unit = "bytes"
	BytesPerSecond Unit = "Bps"
	PerSecond      Unit = "ops"
	Share          Unit = "percentunit"
)

// All are the dashboards: the overview, and one for each service.
func All() []Dashboard { return []Dashboard{overview, frontDoor, metadataReplica, partitionReplica} }

func graph(title string, unit Unit, queries ...Query) Panel {
	return Panel{Title: title, Unit: unit, Queries: queries}
}

func figure(title string, unit Unit, queries ...Query) Panel {
	return Panel{Title: title, Unit: unit, Figures: true, Queries: queries}
}

func (p Panel) about(text string) Panel {
	p.About = text
	return p
}

// quantiles of a histogram, by labels. The window of a minute holds enough scrapes of ten seconds.
func quantiles(metric, selector, by, legend string) []Query {
	of := func(q string) string {
		return "histogram_quantile(" + q + ", sum by (le" + by + ") (rate(" + metric + "_bucket{" + selector + "}[1m])))"
	}
	return []Query{{of("0.5"), legend + "median"}, {of("0.99"), legend + "99 %"}}
}

// process are the panels every service has.
func process(job string) Row {
	of := `{job="` + job + `"}`
	return Row{"Process", []Panel{
		graph("Processors in use", Number, Query{"rate(process_cpu_seconds_total" + of + "[1m])", "{{instance}}"}),
		graph("Memory", Bytes, Query{"process_resident_memory_bytes" + of, "{{instance}}"}),
		graph("Buffers in use", Share, Query{"whippet_buffer_used_bytes" + of + " / whippet_buffer_budget_bytes" + of, "{{instance}}"}).
			about("Share of limits.memory. At 1 requests are refused."),
		graph("Goroutines", Number, Query{"go_goroutines" + of, "{{instance}}"}),
		graph("Open files and sockets", Number, Query{"process_open_fds" + of, "{{instance}}"}),
		graph("Buffers leaked", Number, Query{"whippet_buffers_leaked_total" + of, "{{instance}}"}).
			about("Harmless, and a fault to report."),
	}}
}

// between are the panels of connections to other processes.
func between(job string) Row {
	of := `{job="` + job + `"}`
	return Row{"Other processes", []Panel{
		graph("Connections", Number, Query{"whippet_link_connections" + of, "{{instance}} {{plane}}"}),
		graph("Frames", PerSecond, Query{"sum by (instance, plane, direction) (rate(whippet_link_frames_total" + of + "[1m]))", "{{instance}} {{plane}} {{direction}}"}),
		graph("Bytes", BytesPerSecond, Query{"sum by (instance, plane, direction) (rate(whippet_link_bytes_total" + of + "[1m]))", "{{instance}} {{plane}} {{direction}}"}),
		graph("Frames lost", PerSecond, Query{"sum by (plane, reason) (rate(whippet_link_dropped_frames_total" + of + "[1m]))", "{{plane}} {{reason}}"}).
			about("Not sent, or not taken. What is missing is asked for again."),
		graph("Connections made again, or in vain", PerSecond,
			Query{"sum by (instance) (rate(whippet_link_reconnects_total" + of + "[1m]))", "{{instance}} again"},
			Query{"sum by (instance) (rate(whippet_link_failed_dials_total" + of + "[1m]))", "{{instance}} in vain"}),
		graph("Connections refused", PerSecond, Query{"sum by (reason) (rate(whippet_link_refused_connections_total" + of + "[1m]))", "{{reason}}"}).
			about("Of processes that did not prove who they are, or broke a rule."),
	}}
}
