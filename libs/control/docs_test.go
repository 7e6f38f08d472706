package control

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestPageShowsEverySubject compares deploy/docs/control.md with the list of subjects and events.
func TestPageShowsEverySubject(t *testing.T) {
	page, err := os.ReadFile("../../deploy/docs/control.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, role := range Roles {
		rows = append(rows, fmt.Sprintf("| `%s` | `%s.*.%s.>` | nothing |", role, prefix, role))
	}
	kinds := map[Kind]bool{}
	for _, k := range Kinds {
		fields := ""
		if k.Fields != "" {
			fields = "`" + strings.ReplaceAll(k.Fields, ", ", "`, `") + "`"
		}
		rows = append(rows, fmt.Sprintf("| `%s` | `%s` | %s | %s | %s |", k.Kind, k.Channel, k.From, k.Says, fields))
		kinds[k.Kind] = true
	}
	for _, row := range rows {
		if !strings.Contains(string(page), row+"\n") {
			t.Errorf("the page lacks the row\n%s", row)
		}
	}
	if len(kinds) != len(Kinds) {
		t.Error("a kind is there twice")
	}
	for line := range strings.Lines(string(page)) {
		for _, c := range Channels {
			kind, _, _ := strings.Cut(strings.TrimPrefix(line, "| `"), "`")
			if strings.Contains(line, fmt.Sprintf("` | `%s` |", c)) && !kinds[Kind(kind)] {
				t.Errorf("the page has an event that there is not: %s", line)
			}
		}
	}
}
