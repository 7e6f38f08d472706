// Command configdoc writes the configuration reference page. It is run by go generate in
// libs/service.
package main

import (
	"fmt"
	"os"

	"github.com/whippet-mq/whippet/libs/service"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: configdoc FILE")
		os.Exit(2)
	}
	page, err := service.Reference(".")
	if err == nil {
		err = os.WriteFile(os.Args[1], page, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
