package service

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

//go:generate go run ./internal/configdoc ../../deploy/docs/configuration.md

// Reference returns the page deploy/docs/configuration.md: one table per part of Config, made from
// the struct and from the comments in the Go files of dir, which must be this package's directory.
func Reference(dir string) ([]byte, error) {
	comments, err := fieldComments(dir)
	if err != nil {
		return nil, err
	}
	page := bytes.NewBufferString(referenceHead)
	config := reflect.ValueOf(&Config{}).Elem()
	for i := range config.NumField() {
		field := config.Type().Field(i)
		key, ok := field.Tag.Lookup("key")
		if !ok || key == "-" {
			continue
		}
		title := key
		if title == "" {
			title = "(top level)"
		}
		fmt.Fprintf(page, "\n## %s\n\n", title)
		if text := comments[field.Type.Name()]; text != "" {
			_, text, _ = strings.Cut(text, " ")
			text = strings.TrimPrefix(strings.TrimPrefix(text, "is "), "are ")
			fmt.Fprintf(page, "%s\n\n", strings.ToUpper(text[:1])+text[1:])
		}
		if why, ok := strings.CutPrefix(field.Tag.Get("use"), "none: "); ok {
			fmt.Fprintf(page, "Accepted without effect: %s.\n\n", why)
		}
		page.WriteString("| key | environment | default | allowed | meaning |\n|---|---|---|---|---|\n")
		if err := referenceRows(page, config.Field(i), key, field.Tag.Get("use"), comments); err != nil {
			return nil, err
		}
	}
	page.WriteString(referenceTail())
	return page.Bytes(), nil
}

func referenceRows(page *bytes.Buffer, v reflect.Value, prefix, use string, comments map[string]string) error {
	var failed error
	// A field's comment is found by its type's name and its own; anonymous structs by their field.
	var rows func(v reflect.Value, prefix, use string)
	rows = func(v reflect.Value, prefix, use string) {
		walk(v, prefix, use, func(s setting) {
			text := comments[commentKey(v, s.key, prefix)]
			if text == "" {
				failed = fmt.Errorf("setting %s has no comment", s.key)
			}
			fmt.Fprintf(page, "| `%s` | %s | %s | %s | %s |\n", s.key, names(s), defaultText(s), s.allowed(), meaning(s, use, text))
		}, func(t table) {
			rows(reflect.New(t.slice.Type().Elem()).Elem(), t.key+".<i>", t.use)
		})
	}
	rows(v, prefix, use)
	return failed
}

// commentKey returns "Type.Field" of the field that holds the setting.
func commentKey(v reflect.Value, key, prefix string) string {
	at, name := v.Type(), typeName(v.Type().Name())
	for segment := range strings.SplitSeq(strings.TrimPrefix(strings.TrimPrefix(key, prefix), "."), ".") {
		for i := range at.NumField() {
			field := at.Field(i)
			if field.Tag.Get("key") != segment {
				continue
			}
			switch {
			case field.Type.Kind() == reflect.Struct && field.Type != reflect.TypeFor[Secret]():
				at, name = field.Type, typeName(field.Type.Name(), name, field.Name)
			default:
				return name + "." + field.Name
			}
			break
		}
	}
	return ""
}

// typeName names a struct type: its own name, or for an anonymous one that of the holder and the field.
func typeName(name string, holder ...string) string {
	if name == "" {
		return strings.Join(holder, ".")
	}
	return name
}

func names(s setting) string {
	var all []string
	for _, name := range s.environment() {
		if s.secret() {
			name += "` / `" + name + "_FILE"
		}
		all = append(all, "`"+name+"`")
	}
	return strings.Join(all, ", ")
}

func defaultText(s setting) string {
	text, ok := s.tag.Lookup("default")
	if !ok || text == "" {
		return ""
	}
	return "`" + text + "`"
}

func meaning(s setting, section, text string) string {
	mode, why, _ := strings.Cut(s.use, ": ")
	switch {
	case mode == "none" && s.use != section:
		return text + " Accepted without effect: " + why + "."
	case mode == "refuse":
		return text + " Any other value is refused: " + why + "."
	}
	return text
}

// fieldComments returns the comments of all struct types ("Type") and their fields ("Type.Field").
func fieldComments(dir string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "config*.go"))
	if err != nil {
		return nil, err
	}
	comments := map[string]string{}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		for _, decl := range file.Decls {
			general, ok := decl.(*ast.GenDecl)
			if !ok || general.Tok != token.TYPE {
				continue
			}
			spec := general.Specs[0].(*ast.TypeSpec)
			comments[spec.Name.Name] = oneLine(general.Doc)
			if body, ok := spec.Type.(*ast.StructType); ok {
				structComments(comments, spec.Name.Name, body)
			}
		}
	}
	return comments, nil
}

func structComments(comments map[string]string, name string, body *ast.StructType) {
	for _, field := range body.Fields.List {
		for _, id := range field.Names {
			comments[name+"."+id.Name] = oneLine(field.Doc)
			if inner, ok := field.Type.(*ast.StructType); ok {
				structComments(comments, name+"."+id.Name, inner)
			}
		}
	}
}

func oneLine(doc *ast.CommentGroup) string {
	return strings.Join(strings.Fields(doc.Text()), " ")
}

const referenceHead = `# Configuration

<!-- Generated by "make generate" from the struct that reads it: libs/service/config*.go. Do not edit. -->

A process reads, each later source over the earlier ones:

1. the defaults below,
2. the TOML file that ` + "`--config FILE`" + ` names, else ` + "`IGGY_CONFIG_PATH`" + `; without either there is no file,
3. the environment; an empty value counts as absent. A file ` + "`.env`" + ` in the working directory (or ` + "`IGGY_ENV_PATH`" + `) fills in what the environment leaves out,
4. flags.

| text | form |
|---|---|
| duration | numbers with units: ` + "`500ms`, `1 m`, `1h 30m`, `7 days`" + `; zero is ` + "`0`, `unlimited`, `disabled`, `none`" + ` |
| size | ` + "`64 MiB`" + ` is binary, ` + "`2 MB`" + ` decimal, a bare number bytes; zero as above |
| list | in TOML a list, in the environment ` + "`[a, b]`" + ` or ` + "`a, b`" + ` |
| list of tables | ` + "`[[cluster.nodes]]`" + ` in TOML; in the environment the index, from 0, stands for ` + "`<I>`" + `. The environment replaces the file's whole list |
| secret | every secret can also come as ` + "`NAME_FILE`" + `, the path of a file that holds it. Secrets never appear in logs, errors or dumps |

A bad value ends the process with status 2 and a message that names key, value, source and what is allowed. So does an unknown key
in the file, with the nearest known one. An unknown ` + "`IGGY_*` or `WHIPPET_*`" + ` variable is one warning. Two variables that mean the same
setting must not differ. Keys below ` + "`system`" + ` may leave that level out.
`

func referenceTail() string {
	var tail strings.Builder
	tail.WriteString("\n## Variables without a key\n\n| variable | meaning |\n|---|---|\n")
	texts := map[string]string{
		"IGGY_CONFIG_PATH":    "path of the TOML file",
		"IGGY_ENV_PATH":       "path of the file with further variables, instead of `.env`",
		"IGGY_DISPLAY_CONFIG": "has no effect: the configuration in force is in `runtime/current_config.toml`",
		"IGGY_CI_BUILD":       "has no effect",
		"RUST_LOG":            "log level, where `WHIPPET_LOG_LEVEL` is absent: the directive without a target counts",
		"GOMEMLIMIT":          "memory the garbage collector aims at; default is twice `limits.memory` and 256 MiB",
		"NOTIFY_SOCKET":       "set by systemd: READY and STOPPING are sent there",
	}
	for name, text := range outside {
		switch {
		case texts[name] != "":
		case strings.HasPrefix(name, "WHIPPET_"):
			texts[name] = "read by the command `whippet` only"
		default:
			texts[name] = text
		}
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		fmt.Fprintf(&tail, "| `%s` | %s |\n", name, texts[name])
	}
	tail.WriteString("\n## Flags\n\n```\n" + flagsHelp + "```\n")
	return tail.String()
}
