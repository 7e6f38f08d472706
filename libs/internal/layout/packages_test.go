package layout

import (
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every package says what it owns in a doc.go; a command may say it above its main function.
func TestEveryPackageHasDoc(t *testing.T) {
	for _, p := range all(t) {
		documented := false
		onlyTests := true
		for _, f := range p.files {
			name := path.Base(f.path)
			documented = documented || f.ast.Doc != nil && (name == "doc.go" || p.name == "main" && name == "main.go")
			onlyTests = onlyTests && f.test
		}
		if !documented && !onlyTests {
			t.Errorf("%s has no doc.go with a package comment", p.dir)
		}
	}
}

// A package is named for what it holds.
func TestPackageNames(t *testing.T) {
	for _, p := range all(t) {
		for _, vague := range []string{"util", "utils", "common", "helpers", "helper", "manager", "misc", "base"} {
			if p.name == vague || path.Base(p.dir) == vague {
				t.Errorf("%s is named %s", p.dir, vague)
			}
		}
	}
}

// A test waits for a condition, never for time to pass. Files that use testing/synctest may sleep:
// its clock is not the real one. So may a line that says why its moment "is the point of the test".
func TestNoSleepInTests(t *testing.T) {
	for _, p := range all(t) {
		for _, f := range p.files {
			if !f.test || slices.Contains(f.imports(), "testing/synctest") {
				continue
			}
			excused := map[int]bool{}
			for _, group := range f.ast.Comments {
				excused[fileSet.Position(group.Pos()).Line] = strings.Contains(group.Text(), "is the point of the test")
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				selector, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				line := fileSet.Position(n.Pos()).Line
				if from, ok := selector.X.(*ast.Ident); ok && from.Name == "time" && selector.Sel.Name == "Sleep" && !excused[line] {
					t.Errorf("%s:%d sleeps", f.path, line)
				}
				return true
			})
		}
	}
}

var unfinished = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`)

// A comment promises nothing that is not there.
func TestNoUnfinishedWords(t *testing.T) {
	for _, p := range all(t) {
		for _, f := range p.files {
			for _, group := range f.ast.Comments {
				if word := unfinished.FindString(group.Text()); word != "" {
					t.Errorf("%s:%d says %s", f.path, fileSet.Position(group.Pos()).Line, word)
				}
			}
		}
	}
}

// Users and scripts rely on these targets, and "make help" has one line for each.
func TestMakeTargets(t *testing.T) {
	makefile := read(t, "Makefile")
	for _, target := range strings.Fields("help run test build bench soak lint generate clean") {
		if !regexp.MustCompile(`(?m)^` + target + `:.* ## \S`).MatchString(makefile) {
			t.Errorf("the target %s is missing or has no line of help", target)
		}
	}
}
