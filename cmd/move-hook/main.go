// Command move-hook makes Cluster API pivots safe.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/move-hook/move-hook/internal/cli"
)

// version is written by the linker: -ldflags "-X main.version=v0.1.0".
var version string

func main() {
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks for a clean stop, a second one ends the process.
	context.AfterFunc(ctx, stop)
	defer stop()
	streams := cli.OSStreams()
	streams.Version = version
	return cli.Run(ctx, streams, os.Args[1:])
}
