package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// gather is how long a table that is shown once takes to hear from everybody: processes speak once a second.
const gather = 2500 * time.Millisecond

// topCommand shows the figures of all processes as they change.
func (a *app) topCommand() *cobra.Command {
	l := &listener{app: a}
	var once bool
	cmd := &cobra.Command{
		Use: "top", Short: "Watch the processes of a cluster: rates, latencies, leads, lag", Args: usage(cobra.NoArgs),
		Long: "Keys: s sorts by the next column, r turns the order, q ends. When the output is no terminal, a table a second.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			heard, err := l.open(ctx)
			if err != nil {
				return err
			}
			t := &top{app: a, board: newBoard()}
			if once {
				return t.once(ctx, heard)
			}
			return t.watch(ctx, heard)
		},
	}
	l.flags(cmd)
	cmd.Flags().BoolVar(&once, "once", false, "show it once, as plain text")
	return cmd
}

// top is a running display.
type top struct {
	app     *app
	board   *board
	column  string // sorted by, "": by role and node
	turned  bool
	columns []string // that are shown and can be sorted by
}

// once listens for a moment and prints the table.
func (t *top) once(ctx context.Context, heard messages) error {
	t.listen(ctx, heard, gather)
	now := time.Now()
	rows := t.board.rows(now)
	if len(rows) == 0 {
		return errors.New("no process said anything: is NATS the one they use, and do they use it?")
	}
	if t.app.output == "json" {
		return t.app.print(rows)
	}
	return t.page(now, rows)
}

// listen takes messages in for a while.
func (t *top) listen(ctx context.Context, heard messages, during time.Duration) {
	end := time.NewTimer(during)
	defer end.Stop()
	for {
		select {
		case m := <-heard:
			t.board.hear(m, time.Now())
		case <-end.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// page prints everything as plain text.
func (t *top) page(now time.Time, rows list) error {
	_, err := t.app.Out.Write(t.text(now, rows))
	return err
}

// text is the whole display.
func (t *top) text(now time.Time, rows list) []byte {
	var b bytes.Buffer
	fmt.Fprintln(&b, t.board.total(now))
	if t.board.missed > 0 {
		fmt.Fprintf(&b, "%s did not arrive\n", count(t.board.missed, "message"))
	}
	b.WriteByte('\n')
	rows = filled(rows)
	t.sort(rows)
	_ = writeTable(&b, rows) // to memory
	if len(t.board.events) > 0 {
		b.WriteByte('\n')
		for _, line := range t.board.events {
			fmt.Fprintln(&b, line)
		}
	}
	return b.Bytes()
}

// filled leaves out the columns in which nothing stands.
func filled(rows list) list {
	something := map[string]bool{}
	for _, r := range rows {
		for _, f := range r {
			something[f.Name] = something[f.Name] || fmt.Sprint(f.Value) != "-"
		}
	}
	left := make(list, 0, len(rows))
	for _, r := range rows {
		left = append(left, slices.DeleteFunc(slices.Clone(r), func(f field) bool { return !something[f.Name] }))
	}
	return left
}

// sort puts the rows in order, the largest first.
func (t *top) sort(rows list) {
	t.columns = nil
	if len(rows) > 0 {
		for _, f := range rows[0] {
			if _, isText := f.Value.(string); !isText {
				t.columns = append(t.columns, f.Name)
			}
		}
	}
	if slices.Contains(t.columns, t.column) {
		of := func(r record) float64 {
			return weight(r[slices.IndexFunc(r, func(f field) bool { return f.Name == t.column })].Value)
		}
		slices.SortStableFunc(rows, func(a, b record) int { return cmp.Compare(of(b), of(a)) })
	}
	if t.turned {
		slices.Reverse(rows)
	}
}

// watch shows the table again each second, on a terminal in place.
func (t *top) watch(ctx context.Context, heard messages) error {
	in, isFile := t.app.In.(*os.File)
	out, alsoFile := t.app.Out.(*os.File)
	if !isFile || !alsoFile || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		for ctx.Err() == nil {
			t.listen(ctx, heard, time.Second)
			now := time.Now()
			if err := t.page(now, t.board.rows(now)); err != nil {
				return err
			}
		}
		return nil
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return err
	}
	fmt.Fprint(out, "\x1b[?1049h\x1b[?25l") // another screen, no cursor
	defer func() {
		fmt.Fprint(out, "\x1b[?25h\x1b[?1049l")
		_ = term.Restore(int(in.Fd()), before)
	}()
	keys := make(chan byte)
	go readKeys(ctx, in, keys)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for t.draw(out); ; {
		select {
		case m := <-heard:
			t.board.hear(m, time.Now())
			continue
		case k := <-keys:
			if !t.key(k) {
				return nil
			}
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		t.draw(out)
	}
}

func readKeys(ctx context.Context, in *os.File, keys chan<- byte) {
	var b [1]byte
	for {
		if n, err := in.Read(b[:]); err != nil || n == 0 {
			b[0] = 'q'
		}
		select {
		case keys <- b[0]:
		case <-ctx.Done():
			return
		}
	}
}

// key does what a key asks for; false ends the display.
func (t *top) key(k byte) bool {
	switch k {
	case 'q', 'Q', 3, 4: // ^C and ^D too
		return false
	case 'r':
		t.turned = !t.turned
	case 's':
		at := slices.Index(t.columns, t.column) + 1
		if t.column = ""; at < len(t.columns) {
			t.column = t.columns[at]
		}
	}
	return true
}

// draw fills the terminal.
func (t *top) draw(out *os.File) {
	width, height, err := term.GetSize(int(out.Fd()))
	if err != nil || width <= 0 {
		width, height = 120, 40
	}
	now := time.Now()
	body := string(t.text(now, t.board.rows(now)))
	sorted := "role"
	if t.column != "" {
		sorted = title(t.column)
	}
	lines := append(strings.Split(strings.TrimRight(body, "\n"), "\n"), "", "sorted by "+sorted+"   s: next column   r: turn   q: end")
	if len(lines) > height { // the last line stays
		lines = append(lines[:height-1], lines[len(lines)-1])
	}
	var b strings.Builder
	b.WriteString("\x1b[H")
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(cut(line, width) + "\x1b[K")
	}
	b.WriteString("\x1b[J")
	_, _ = out.WriteString(b.String())
}

// cut shortens a line to so many characters.
func cut(line string, width int) string {
	if r := []rune(line); len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return line
}
