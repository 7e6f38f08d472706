package service

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/pelletier/go-toml/v2"
)

// readFile flattens a TOML file into raw values. Keys of the reference's coming layout, without the
// level "system", are taken as their longer spelling.
func (l *loader) readFile(path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		l.errs = append(l.errs, fmt.Errorf("configuration file: %w", err))
		return
	}
	var tree map[string]any
	if err := toml.Unmarshal(text, &tree); err != nil {
		var at *toml.DecodeError
		if errors.As(err, &at) {
			row, column := at.Position()
			err = fmt.Errorf("line %d, column %d: %s", row, column, at.Error())
		}
		l.errs = append(l.errs, fmt.Errorf("configuration file %s: %w", path, err))
		return
	}
	keys := map[string]bool{}
	for _, s := range l.known {
		keys[s.key] = true
	}
	flatten(tree, "", func(key string, value any) {
		if generic := indexes.ReplaceAllString(key, ".<i>"); !keys[generic] && keys["system."+generic] {
			key = "system." + key
		}
		l.raw[key] = raw{value, "file " + path}
	})
}

func flatten(tree map[string]any, prefix string, emit func(string, any)) {
	for name, value := range tree {
		key := prefix + name
		switch value := value.(type) {
		case map[string]any:
			flatten(value, key+".", emit)
		case []any:
			if !tables(value) {
				emit(key, value)
				continue
			}
			for i, item := range value {
				flatten(item.(map[string]any), key+"."+strconv.Itoa(i)+".", emit)
			}
		default:
			emit(key, value)
		}
	}
}

// tables reports whether the list holds tables only, and at least one.
func tables(items []any) bool {
	for _, item := range items {
		if _, ok := item.(map[string]any); !ok {
			return false
		}
	}
	return len(items) > 0
}
