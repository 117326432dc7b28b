// Package interrupt_test kills move-hook at its writes and lets it go on, or take
// back what it did, on two real API servers with the garbage collector and without
// controllers. The test writes the status that controllers would rebuild.
package interrupt_test

import (
	"context"
	"flag"
	"os"
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/test/scenario"
	"github.com/move-hook/move-hook/test/stack"
)

// world is what all tests share; each point has a namespace of its own.
var world struct {
	source, target *stack.Management
	hook           string
	// both is the first moment, by namespace, at which both copies were unpaused.
	both sync.Map
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
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		for _, side := range []*stack.Management{world.source, world.target} {
			if err := play(ctx, side, func(c client.ObjectKey) { watchBoth(ctx, c) }); err != nil {
				return 1, err
			}
		}
		return m.Run(), nil
	}))
}

func soak() bool { return os.Getenv("MOVE_HOOK_SOAK") != "" }
