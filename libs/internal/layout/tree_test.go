package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const modulePath = "github.com/whippet-mq/whippet/"

// root is the directory that holds go.work, seen from this package.
const root = "../../.."

// pkg is the source of one directory.
type pkg struct {
	dir   string // below the root, with slashes
	name  string
	files []file
}

type file struct {
	path string // from the root, with slashes
	test bool
	ast  *ast.File
}

func (f file) imports() []string {
	var all []string
	for _, spec := range f.ast.Imports {
		path, _ := strconv.Unquote(spec.Path.Value) // the parser accepted it
		all = append(all, path)
	}
	return all
}

var fileSet = token.NewFileSet()

// packages parses every Go file of the three modules, once.
var packages = sync.OnceValues(func() ([]pkg, error) {
	var all []pkg
	for _, module := range []string{"libs", "services", "tools"} {
		err := filepath.WalkDir(filepath.Join(root, module), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				return err
			}
			if name := entry.Name(); name == "testdata" || strings.HasPrefix(name, ".") {
				return fs.SkipDir
			}
			p, err := parse(path)
			if err == nil && len(p.files) > 0 {
				all = append(all, p)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
})

func parse(path string) (pkg, error) {
	relative, err := filepath.Rel(root, path)
	if err != nil {
		return pkg{}, err
	}
	p := pkg{dir: filepath.ToSlash(relative)}
	names, err := filepath.Glob(filepath.Join(path, "*.go"))
	if err != nil {
		return pkg{}, err
	}
	for _, name := range names {
		tree, err := parser.ParseFile(fileSet, name, nil, parser.ParseComments)
		if err != nil {
			return pkg{}, err
		}
		test := strings.HasSuffix(name, "_test.go")
		if !test || p.name == "" {
			p.name = tree.Name.Name
		}
		p.files = append(p.files, file{p.dir + "/" + filepath.Base(name), test, tree})
	}
	return p, nil
}

// all returns the packages, or ends the test.
func all(t *testing.T) []pkg {
	t.Helper()
	found, err := packages()
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 10 {
		t.Fatalf("only %d packages found: the walk is broken", len(found))
	}
	return found
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
