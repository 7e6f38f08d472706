package wire

import (
	"os"
	"strings"
	"testing"
)

func TestCodeTexts(t *testing.T) {
	for code, want := range map[Code]string{
		CodeInvalidCommand: "InvalidCommand (3): command, body or frame not usable",
		0:                  "code 0",
		17:                 "code 17",
	} {
		if got := code.Error(); got != want {
			t.Errorf("%d: %q, want %q", uint32(code), got, want)
		}
	}
	if !CodeStreamIdNotFound.Known() || Code(60).Known() || CodeStreamIdNotFound.Name() != "StreamIdNotFound" {
		t.Error("which codes are known")
	}
	for code, want := range map[Code]bool{
		CodeTransientNotCommitted: true, CodeTransientNotAccepted: true, CodeRequestAlreadyApplied: false, CodeUnauthorized: false,
	} {
		if code.IsTransient() != want {
			t.Errorf("%v transient: %v", code, !want)
		}
	}
}

// The generated files hold every row of the table: a row changed without go generate is noticed.
func TestCodesAreGenerated(t *testing.T) {
	table, err := os.ReadFile("codes.tsv")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("CODES.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(table)) {
		cells := strings.Split(strings.TrimSpace(line), "\t")
		if strings.HasPrefix(line, "#") {
			continue
		}
		rows++
		if !strings.Contains(string(page), "| "+strings.Join(cells, " | ")+" |\n") {
			t.Errorf("page lacks %q", cells)
		}
	}
	known := 0
	for code := range Code(20000) {
		if code.Known() {
			known++
			if !strings.Contains(string(table), "\n"+code.number()+"\t"+code.Name()+"\t"+code.Meaning()+"\n") {
				t.Errorf("table lacks %v", code)
			}
		}
	}
	if known != rows {
		t.Errorf("%d codes known, %d rows", known, rows)
	}
}
