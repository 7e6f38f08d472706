// Package plot draws line and bar charts as SVG text: enough for the pictures of a benchmark, and
// nothing else.
package plot
