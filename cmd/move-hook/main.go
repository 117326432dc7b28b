// Command move-hook makes Cluster API pivots safe.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/move-hook/move-hook/internal/cli"
)

func main() {
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks for a clean stop, a second one ends the process.
	context.AfterFunc(ctx, stop)
	defer stop()
	return cli.Run(ctx, cli.OSStreams(), os.Args[1:])
}
