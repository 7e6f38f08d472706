package plot

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// Line is one curve of a chart.
type Line struct {
	Name string
	X, Y []float64
}

// Chart is a set of curves over common axes.
type Chart struct {
	Title, XLabel, YLabel string
	Lines                 []Line
	LogY                  bool
	// XTicks replaces the numbers under the x axis: position and text.
	XTicks []Tick
}

// Tick is a mark on an axis.
type Tick struct {
	At   float64
	Text string
}

// Bar is one bar of a bar chart.
type Bar struct {
	Name  string
	Value float64
	Text  string // printed at its end
}

const (
	width, height = 760, 300
	left, right   = 80, 20
	top, bottom   = 40, 50
	plotWidth     = width - left - right
	plotHeight    = height - top - bottom
)

var colors = []string{"#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed", "#0891b2"}

// Write draws the charts one below the other.
func Write(w io.Writer, charts ...Chart) error {
	var b strings.Builder
	open(&b, height*len(charts))
	for i, c := range charts {
		fmt.Fprintf(&b, "<g transform=\"translate(0,%d)\">\n", i*height)
		c.draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func open(b *strings.Builder, h int) {
	fmt.Fprintf(b, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"12\">\n", width, h)
	fmt.Fprintf(b, "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n", width, h)
}

func (c *Chart) draw(b *strings.Builder) {
	xs, ys := c.spans()
	text(b, width/2, 20, "middle", c.Title, "bold")
	text(b, left+plotWidth/2, height-12, "middle", c.XLabel, "")
	fmt.Fprintf(b, "<text transform=\"translate(16,%d) rotate(-90)\" text-anchor=\"middle\">%s</text>\n", top+plotHeight/2, html.EscapeString(c.YLabel))
	for _, t := range ys.ticks() {
		y := top + plotHeight - ys.place(t.At)*plotHeight
		fmt.Fprintf(b, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#e5e7eb\"/>\n", left, y, left+plotWidth, y)
		text(b, left-6, y+4, "end", t.Text, "")
	}
	ticks := c.XTicks
	if ticks == nil {
		ticks = xs.ticks()
	}
	for _, t := range ticks {
		text(b, left+xs.place(t.At)*plotWidth, top+plotHeight+18, "middle", t.Text, "")
	}
	fmt.Fprintf(b, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#9ca3af\"/>\n", left, top, plotWidth, plotHeight)
	for i, l := range c.Lines {
		color := colors[i%len(colors)]
		fmt.Fprintf(b, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.6\" points=\"", color)
		for j := range l.X {
			fmt.Fprintf(b, "%.1f,%.1f ", left+xs.place(l.X[j])*plotWidth, top+plotHeight-ys.place(l.Y[j])*plotHeight)
		}
		b.WriteString("\"/>\n")
		fmt.Fprintf(b, "<rect x=\"%d\" y=\"%d\" width=\"12\" height=\"3\" fill=\"%s\"/>\n", left+8, top+10+16*i, color)
		text(b, left+26, float64(top+15+16*i), "start", l.Name, "")
	}
}

func text[X int | float64](b *strings.Builder, x X, y float64, anchor, s, weight string) {
	if weight != "" {
		weight = fmt.Sprintf(" font-weight=\"%s\"", weight)
	}
	fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s>%s</text>\n", float64(x), y, anchor, weight, html.EscapeString(s))
}

// axis maps values to 0..1.
type axis struct {
	low, high float64
	log       bool
}

func (c *Chart) spans() (x, y axis) {
	x, y = axis{low: math.Inf(1), high: math.Inf(-1)}, axis{low: math.Inf(1), high: math.Inf(-1), log: c.LogY}
	for _, l := range c.Lines {
		for i := range l.X {
			x.low, x.high = min(x.low, l.X[i]), max(x.high, l.X[i])
			y.low, y.high = min(y.low, l.Y[i]), max(y.high, l.Y[i])
		}
	}
	if !y.log {
		y.low = min(0, y.low)
	}
	return x.usable(), y.usable()
}

func (a axis) usable() axis {
	if a.low > a.high {
		a.low, a.high = 0, 1
	}
	if a.log {
		a.low = math.Pow(10, math.Floor(math.Log10(max(a.low, 1e-9))))
	}
	if a.high <= a.low {
		a.high = a.low + 1
	}
	return a
}

func (a axis) place(v float64) float64 {
	if a.log {
		v, a.low, a.high = math.Log10(max(v, a.low)), math.Log10(a.low), math.Log10(a.high)
	}
	return min(max((v-a.low)/(a.high-a.low), 0), 1)
}

func (a axis) ticks() (out []Tick) {
	if a.log {
		for v := a.low; v <= a.high; v *= 10 {
			out = append(out, Tick{v, Short(v)})
		}
		return out
	}
	step := math.Pow(10, math.Floor(math.Log10(a.high-a.low)))
	for (a.high-a.low)/step < 4 {
		step /= 2
	}
	for v := math.Ceil(a.low/step) * step; v <= a.high+step/1e6; v += step {
		out = append(out, Tick{v, Short(v)})
	}
	return out
}

// Short prints a number with k or M.
func Short(v float64) string {
	switch {
	case math.Abs(v) >= 1e6:
		return fmt.Sprintf("%.4gM", v/1e6)
	case math.Abs(v) >= 1e4:
		return fmt.Sprintf("%.4gk", v/1e3)
	}
	return fmt.Sprintf("%.5g", v)
}

// WriteBars draws horizontal bars, with a line at value 1.
func WriteBars(w io.Writer, title string, bars []Bar) error {
	const rowHeight, labels = 30, 340
	var b strings.Builder
	open(&b, top+rowHeight*len(bars)+20)
	text(&b, width/2, 20, "middle", title, "bold")
	scale := axis{high: 1.1}
	for _, bar := range bars {
		scale.high = max(scale.high, bar.Value*1.1)
	}
	const room = width - labels - 80
	for i, bar := range bars {
		y := top + i*rowHeight
		text(&b, labels-8, float64(y+16), "end", bar.Name, "")
		fmt.Fprintf(&b, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"20\" fill=\"%s\"/>\n", labels, y, scale.place(bar.Value)*room, colors[0])
		text(&b, labels+scale.place(bar.Value)*room+6, float64(y+15), "start", bar.Text, "")
	}
	one := labels + scale.place(1)*room
	fmt.Fprintf(&b, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"%s\" stroke-dasharray=\"4\"/>\n</svg>\n",
		one, top-6, one, top+rowHeight*len(bars), colors[1])
	_, err := io.WriteString(w, b.String())
	return err
}
