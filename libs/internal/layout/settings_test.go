package layout

import (
	"go/ast"
	"go/build"
	"go/types"
	"os/exec"
	"path"
	"reflect"
	"strings"
	"testing"

	"github.com/whippet-mq/whippet/libs/service"
)

// A setting that no program reads would be a promise to the user that nobody keeps. What has no
// effect must say so with its use tag.
func TestEverySettingIsRead(t *testing.T) {
	read := fieldsRead(t)
	var check func(c reflect.Type, use string)
	check = func(c reflect.Type, use string) {
		for i := range c.NumField() {
			field := c.Field(i)
			if key, ok := field.Tag.Lookup("key"); !ok || key == "-" {
				continue
			}
			inherited := use
			if own, ok := field.Tag.Lookup("use"); ok {
				inherited = own
			}
			inner := field.Type
			if inner.Kind() == reflect.Slice {
				inner = inner.Elem()
			}
			switch {
			case inherited != "":
			case inner.Kind() == reflect.Struct && inner != reflect.TypeFor[service.Secret]():
				check(inner, inherited)
			case c.Name() != "" && !read[c.Name()+"."+field.Name]:
				t.Errorf("nothing reads %s.%s", c.Name(), field.Name)
			}
		}
	}
	check(reflect.TypeFor[service.Config](), "")
}

// fieldsRead returns "Type.Field" of every field of libs/service that its own code or a service
// selects.
func fieldsRead(t *testing.T) map[string]bool {
	t.Helper()
	out, err := exec.Command("go", "list", modulePath+"libs/service/...", modulePath+"services/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	paths := strings.Fields(string(out))
	imports := exported(t, paths)
	read := map[string]bool{}
	for _, p := range all(t) {
		if !strings.HasPrefix(p.dir, "services/") && p.dir != "libs/service" {
			continue
		}
		var files []*ast.File
		for _, f := range p.files {
			here, err := build.Default.MatchFile(path.Join(root, p.dir), path.Base(f.path))
			if err != nil {
				t.Fatal(err)
			}
			if here && !f.test {
				files = append(files, f.ast)
			}
		}
		info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}
		if _, err := (&types.Config{Importer: imports}).Check(modulePath+p.dir, fileSet, files, info); err != nil {
			t.Fatalf("%s: %v", p.dir, err)
		}
		for _, selection := range info.Selections {
			if owner := holder(selection); owner != nil && owner.Obj().Pkg().Path() == modulePath+"libs/service" {
				read[owner.Obj().Name()+"."+selection.Obj().Name()] = true
			}
		}
	}
	return read
}

// holder returns the named struct whose field is selected.
func holder(s *types.Selection) *types.Named {
	receiver := s.Recv()
	if p, ok := receiver.(*types.Pointer); ok {
		receiver = p.Elem()
	}
	named, ok := receiver.(*types.Named)
	if !ok || named.Obj().Pkg() == nil || s.Kind() != types.FieldVal {
		return nil
	}
	return named
}
