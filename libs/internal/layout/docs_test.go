package layout

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var link = regexp.MustCompile(`\]\(([^)#\s]+)[^)]*\)`)

// Every relative link of the README and of the pages in and below deploy/docs leads somewhere.
func TestLinks(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "deploy/docs/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	below, err := filepath.Glob(filepath.Join(root, "deploy/docs/*/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(append(pages, below...), filepath.Join(root, "README.md"), filepath.Join(root, "CHANGELOG.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			}
		}
	}
}

var namedTest = regexp.MustCompile("`([a-z]+)\\.((?:Test|Fuzz|Benchmark)\\w+)`")

// Every test that the ledger of faults names exists.
func TestFaultsNameTests(t *testing.T) {
	known := map[string]bool{}
	for _, p := range all(t) {
		for _, f := range p.files {
			for _, d := range f.ast.Decls {
				if function, ok := d.(*ast.FuncDecl); ok && f.test {
					known[strings.TrimSuffix(p.name, "_test")+"."+function.Name.Name] = true
				}
			}
		}
	}
	for _, m := range namedTest.FindAllStringSubmatch(read(t, "deploy/docs/faults.md"), -1) {
		if !known[m[1]+"."+m[2]] {
			t.Errorf("deploy/docs/faults.md names %s.%s, which is not there", m[1], m[2])
		}
	}
}
