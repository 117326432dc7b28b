// Command stack-binaries builds the programs of the test stack, unless they
// are in its cache already, and prints the folder they are in.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/move-hook/move-hook/test/stack"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir, err := stack.Binaries(ctx, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(dir)
}
