package observe

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/whippet-mq/whippet/tools/bench/plot"
)

// Pictures: panels side by side, each a chart at half its size.
const (
	shownFor        = 60 * time.Second
	across          = 3
	cellWidth       = 380
	cellHeight      = 150
	mostLines       = 6
	chartOpening    = `<svg xmlns="http://www.w3.org/2000/svg" width="760" height="300"`
	pictureTemplate = `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12"><rect width="100%%" height="100%%" fill="white"/>` + "\n"
)

// draw writes a picture of what each dashboard shows now.
func draw(t *testing.T, p *prometheus, panels []panel, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // documents
		t.Fatal(err)
	}
	byDashboard := map[string][]string{}
	for _, one := range panels {
		cell := figures(t, p, one)
		if one.Type != "stat" {
			cell = chart(t, p, one)
		}
		byDashboard[one.dashboard] = append(byDashboard[one.dashboard], cell)
	}
	for name, cells := range byDashboard {
		var b strings.Builder
		fmt.Fprintf(&b, pictureTemplate, across*cellWidth, (len(cells)+across-1)/across*cellHeight)
		for i, cell := range cells {
			fmt.Fprintf(&b, `<svg x="%d" y="%d" width="%d" height="%d" viewBox="0 0 760 300"`, i%across*cellWidth, i/across*cellHeight, cellWidth, cellHeight)
			b.WriteString(cell)
		}
		b.WriteString("</svg>\n")
		if err := os.WriteFile(filepath.Join(dir, name+".svg"), []byte(b.String()), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
	}
}

// legend fills a legend in.
func legend(format string, s sample) string {
	for label, value := range s.Metric {
		format = strings.ReplaceAll(format, "{{"+label+"}}", value)
	}
	return template.ReplaceAllString(format, "")
}

func number(v any) float64 {
	f, _ := strconv.ParseFloat(fmt.Sprint(v), 64)
	return f
}

// chart draws the curves of a panel, the highest of them.
func chart(t *testing.T, p *prometheus, one panel) string {
	t.Helper()
	c := plot.Chart{Title: one.Title, XLabel: "seconds", YLabel: one.FieldConfig.Defaults.Unit}
	for _, target := range one.Targets {
		series, err := p.history(target.Expr, shownFor)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range series {
			line := plot.Line{Name: legend(target.LegendFormat, s)}
			for _, v := range s.Values {
				if y := number(v[1]); y == y { // not a number: nothing happened
					line.X, line.Y = append(line.X, number(v[0])), append(line.Y, y)
				}
			}
			if len(line.X) > 0 {
				c.Lines = append(c.Lines, line)
			}
		}
	}
	slices.SortStableFunc(c.Lines, func(a, b plot.Line) int {
		return -compare(slices.Max(a.Y), slices.Max(b.Y))
	})
	c.Lines = c.Lines[:min(len(c.Lines), mostLines)]
	first := 0.0
	for i, l := range c.Lines {
		if i == 0 || l.X[0] < first {
			first = l.X[0]
		}
	}
	for _, l := range c.Lines {
		for i := range l.X {
			l.X[i] -= first
		}
	}
	var b strings.Builder
	if err := plot.Write(&b, c); err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(b.String(), chartOpening)
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// figures writes the values of a panel.
func figures(t *testing.T, p *prometheus, one panel) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "><text x=\"380\" y=\"60\" text-anchor=\"middle\" font-size=\"24\" font-weight=\"bold\">%s</text>\n", html.EscapeString(one.Title))
	row := 0
	for _, target := range one.Targets {
		series, err := p.query(target.Expr)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range series {
			fmt.Fprintf(&b, "<text x=\"380\" y=\"%d\" text-anchor=\"middle\" font-size=\"28\">%s %s</text>\n", 130+40*row,
				plot.Short(number(s.Value[1])), html.EscapeString(legend(target.LegendFormat, s)))
			row++
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}
