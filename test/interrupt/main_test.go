// Package interrupt_test kills move-hook at its writes and lets it go on, or take
// back what it did, on two real API servers with the garbage collector and without
// controllers. The test writes the status that controllers would rebuild.
package interrupt_test

import (
	"context"
	"flag"
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
	os.Exit(scenario.WithMoveHook(context.Background(), func(hook string) (int, error) {
		world.hook = hook
		var stop func()
		var err error
		world.source, world.target, stop, err = stack.Pair(context.Background(), stack.Options{Bare: true, GarbageCollector: true, Progress: os.Stderr})
		if err != nil {
			return 1, err
		}
		defer stop()
		return m.Run(), nil
	}))
}

func soak() bool { return os.Getenv("MOVE_HOOK_SOAK") != "" }
