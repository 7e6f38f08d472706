package metadata

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// The package is a pure function of the log: nothing in it may reach a clock, a file, a socket or a random
// source, start a goroutine, or depend on the order of a built-in map. It has no built-in map at all.
func TestPurity(t *testing.T) {
	allowed := map[string]bool{
		"cmp": true, "encoding/base64": true, "encoding/binary": true, "errors": true, "fmt": true, "iter": true,
		"slices": true, "unicode/utf8": true,
		"github.com/tinylib/msgp/msgp":            true,
		"github.com/whippet-mq/whippet/libs/wire": true,
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(files, e.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range f.Imports {
			if path, _ := strconv.Unquote(i.Path.Value); !allowed[path] {
				t.Errorf("%s imports %s", e.Name(), path)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.MapType:
				t.Errorf("%s: a built-in map", files.Position(n.Pos()))
			case *ast.GoStmt, *ast.ChanType, *ast.SelectStmt:
				t.Errorf("%s: concurrency", files.Position(n.Pos()))
			}
			return true
		})
	}
}
