package layout

import (
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The deterministic packages start no goroutine, select over nothing and range over no map: each of
// these would let two runs of the same inputs differ.
func TestDeterministicCode(t *testing.T) {
	var paths []string
	for _, dir := range deterministic {
		paths = append(paths, modulePath+dir)
	}
	imports := exported(t, paths)
	for _, p := range all(t) {
		for _, dir := range deterministic {
			if p.dir != dir {
				continue
			}
			var files []*ast.File
			for _, f := range p.files {
				if !f.test {
					files = append(files, f.ast)
				}
			}
			for _, finding := range impurities(t, modulePath+dir, files, imports) {
				t.Error(finding)
			}
		}
	}
}

// The rule finds what it is for.
func TestImpuritiesAreFound(t *testing.T) {
	const source = `package p
import ("maps"; "slices")
type set map[int]bool
func f(m map[int]int, s set, c chan int, l []int) {
	for range m {}
	for k := range s { _ = k }
	for k := range maps.Keys(m) { _ = k }
	go f(m, s, c, l)
	select { case <-c: default: }
	for range l {}
	for _, k := range slices.Sorted(maps.Keys(m)) { _ = k }
	_ = slices.Collect(maps.Values(m))
}
`
	tree, err := parser.ParseFile(fileSet, "p.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	findings := impurities(t, "p", []*ast.File{tree}, exported(t, []string{"maps", "slices"}))
	lines := []string{"p.go:5:", "p.go:6:", "p.go:7:", "p.go:8:", "p.go:9:", "p.go:12:"}
	for i, finding := range findings {
		if i >= len(lines) || !strings.HasPrefix(finding, lines[i]) {
			t.Errorf("finding %d is %q", i, finding)
		}
	}
	if len(findings) != len(lines) {
		t.Errorf("%d findings, want %d: %q", len(findings), len(lines), findings)
	}
}

// impurities type-checks a package and lists what makes it depend on chance, in source order.
func impurities(t *testing.T, path string, files []*ast.File, imports types.Importer) []string {
	t.Helper()
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	if _, err := (&types.Config{Importer: imports}).Check(path, fileSet, files, info); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	var found []string
	report := func(pos token.Pos, text string) {
		at := fileSet.Position(pos)
		found = append(found, fmt.Sprintf("%s:%d: %s", strings.TrimPrefix(filepath.ToSlash(at.Filename), root+"/"), at.Line, text))
	}
	for _, f := range files {
		sorted := map[ast.Node]bool{} // iterators over a map that slices.Sorted puts in order
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				report(n.Pos(), "starts a goroutine")
			case *ast.SelectStmt:
				report(n.Pos(), "selects over channels")
			case *ast.RangeStmt:
				if _, isMap := info.TypeOf(n.X).Underlying().(*types.Map); isMap {
					report(n.Pos(), "ranges over a map")
				}
			case *ast.CallExpr:
				switch name := callee(info, n); {
				case strings.HasPrefix(name, "slices.Sorted"):
					for _, argument := range n.Args {
						sorted[argument] = true
					}
				case (name == "maps.Keys" || name == "maps.Values" || name == "maps.All") && !sorted[n]:
					report(n.Pos(), "iterates over a map")
				}
			}
			return true
		})
	}
	return found
}

// callee names the package-level function that is called, such as "maps.Keys".
func callee(info *types.Info, call *ast.CallExpr) string {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	f, ok := info.Uses[selector.Sel].(*types.Func)
	if !ok || f.Pkg() == nil {
		return ""
	}
	return f.Pkg().Path() + "." + f.Name()
}

// exported returns an importer for everything the packages depend on, from the Go tool's export data.
func exported(t *testing.T, paths []string) types.Importer {
	t.Helper()
	list := exec.Command("go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}, paths...)...)
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	data := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, export, _ := strings.Cut(strings.TrimSpace(line), "\t")
		data[path] = export
	}
	return importer.ForCompiler(fileSet, "gc", func(path string) (io.ReadCloser, error) {
		if data[path] == "" {
			return nil, errors.New("no export data of " + path)
		}
		return os.Open(data[path])
	})
}
