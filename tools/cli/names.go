package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/whippet-mq/whippet/libs/wire"
)

// identifier reads a name or a number; name: and id: settle what a text of digits means.
func identifier(text string) (wire.Identifier, error) {
	number := text
	if name, ok := strings.CutPrefix(text, "name:"); ok {
		return namedIdentifier(name)
	}
	if n, ok := strings.CutPrefix(text, "id:"); ok {
		number = n
	}
	id, err := strconv.ParseUint(number, 10, 32)
	switch {
	case err == nil:
		return wire.NumericID(uint32(id)), nil
	case number != text:
		return wire.Identifier{}, usageError{fmt.Errorf("%q: want a number behind id:", text)}
	}
	return namedIdentifier(text)
}

func namedIdentifier(name string) (wire.Identifier, error) {
	if name == "" || len(name) > wire.MaxName {
		return wire.Identifier{}, usageError{fmt.Errorf("a name has 1 to %d bytes, not %d", wire.MaxName, len(name))}
	}
	return wire.NamedID(name), nil
}

// identifiers reads several names or numbers.
func identifiers(texts ...string) ([]wire.Identifier, error) {
	var out []wire.Identifier
	for _, text := range texts {
		id, err := identifier(text)
		if err != nil {
			return nil, err
		}
		out = append(out, id)
	}
	return out, nil
}

func number(text, what string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, usageError{fmt.Errorf("%s %q: want a number", what, text)}
	}
	return uint32(n), nil
}

func newName(text string) error {
	_, err := namedIdentifier(text)
	return err
}

// completeNames offers streams for the first argument and topics for the second. It asks the
// server, so it offers nothing when that does not answer.
func (a *app) completeNames(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	words := strings.Fields(cmd.Use)[1:]
	if len(args) >= len(words) || words[len(args)] != "STREAM" && words[len(args)] != "TOPIC" {
		return nil, none
	}
	o, err := a.options()
	if err != nil {
		return nil, none
	}
	c, err := dial(cmd.Context(), o)
	if err != nil {
		return nil, none
	}
	defer c.Close()
	var names []string
	if words[len(args)] == "STREAM" {
		streams, _ := c.Streams()
		for _, s := range streams {
			names = append(names, s.Name)
		}
		return names, none
	}
	stream, err := identifier(args[0])
	if err != nil {
		return nil, none
	}
	topics, _ := c.Topics(stream)
	for _, t := range topics {
		names = append(names, t.Name)
	}
	return names, none
}

func longNumber(text, what string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, usageError{fmt.Errorf("%s %q: want a number", what, text)}
	}
	return n, nil
}
