package observe

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// expression is what a PromQL expression names.
type expression struct {
	metrics  []string
	labels   []string            // of aggregations and matching
	selected map[string][]string // labels in braces, by metric
}

var (
	quoted   = regexp.MustCompile(`"[^"]*"|'[^']*'`)
	grouping = regexp.MustCompile(`\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)`)
	window   = regexp.MustCompile(`\[[^\]]*\]`)
	selector = regexp.MustCompile(`([a-zA-Z_:][\w:]*)\s*\{([^}]*)\}`)
	called   = regexp.MustCompile(`[a-zA-Z_]\w*\s*\(`)
	name     = regexp.MustCompile(`[a-zA-Z_:][\w:]*`)
	template = regexp.MustCompile(`\$labels\.(\w+)|\{\{(\w+)\}\}`)
)

// parse reads the names out of an expression. It knows as much of the language as names need.
func parse(expr string) (e expression) {
	e.selected = map[string][]string{}
	expr = quoted.ReplaceAllString(expr, `""`)
	for _, m := range grouping.FindAllStringSubmatch(expr, -1) {
		e.labels = append(e.labels, name.FindAllString(m[1], -1)...)
	}
	expr = window.ReplaceAllString(grouping.ReplaceAllString(expr, " "), " ")
	for _, m := range selector.FindAllStringSubmatch(expr, -1) {
		for part := range strings.SplitSeq(m[2], ",") {
			if label := name.FindString(part); label != "" {
				e.selected[m[1]] = append(e.selected[m[1]], label)
			}
		}
	}
	expr = selector.ReplaceAllString(expr, " $1 ")
	expr = called.ReplaceAllString(expr, " ")
	for _, n := range name.FindAllString(expr, -1) {
		if !slices.Contains([]string{"and", "or", "unless", "by", "bool", "offset", "inf", "sum", "count", "e"}, n) && !slices.Contains(e.metrics, n) {
			e.metrics = append(e.metrics, n)
		}
	}
	return e
}

// labelsOf are the labels a legend or an annotation shows.
func labelsOf(text string) (labels []string) {
	for _, m := range template.FindAllStringSubmatch(text, -1) {
		labels = append(labels, m[1]+m[2])
	}
	return labels
}

func TestParse(t *testing.T) {
	e := parse(`histogram_quantile(0.99, sum by (le, hop) (rate(a_bucket{op="by (x)", code!~'b|c'}[1m]))) > 0 or count(d) and on (instance) time() - e_seconds < 3600`)
	if want := []string{"a_bucket", "d", "e_seconds"}; !slices.Equal(e.metrics, want) {
		t.Errorf("metrics %q, want %q", e.metrics, want)
	}
	if want := []string{"le", "hop", "instance"}; !slices.Equal(e.labels, want) {
		t.Errorf("labels %q, want %q", e.labels, want)
	}
	if want := []string{"op", "code"}; !slices.Equal(e.selected["a_bucket"], want) {
		t.Errorf("selected %q, want %q", e.selected, want)
	}
	if got, want := labelsOf("{{op}} {{ $labels.instance }} and {{ $value | humanize }}"), []string{"op", "instance"}; !slices.Equal(got, want) {
		t.Errorf("labels of a text %q, want %q", got, want)
	}
}
