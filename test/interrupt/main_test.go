// Package interrupt_test kills move-hook at its writes and lets it go on, or take
// back what it did, on two real API servers with the garbage collector and without
// controllers. The test writes the status that controllers would rebuild.
package interrupt_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/move-hook/move-hook/test/scenario"
	"github.com/move-hook/move-hook/test/stack"
)

// world is what all tests share; each point has a namespace of its own.
var world struct {
	source, target *stack.Management
	hook           string
}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "move-hook-interrupt-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if world.hook, err = scenario.BuildMoveHook(context.Background(), dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var stop func()
	world.source, world.target, stop, err = stack.Pair(context.Background(), stack.Options{Bare: true, GarbageCollector: true, Progress: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer stop()
	return m.Run()
}

func soak() bool { return os.Getenv("MOVE_HOOK_SOAK") != "" }
