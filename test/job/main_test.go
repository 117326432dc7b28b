// Package job_test runs post as the Job of config/ does: with the rights of its
// ServiceAccount, the files and environment of a pod, and the real Job controller.
package job_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/move-hook/move-hook/test/scenario"
	"github.com/move-hook/move-hook/test/stack"
)

// world is a management cluster with kube-controller-manager, and the program under test.
var world struct {
	*stack.Management
	hook string
}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(scenario.WithMoveHook(context.Background(), func(hook string) (code int, err error) {
		world.hook = hook
		world.Management, err = stack.Start(context.Background(), stack.Options{Name: "job", Bare: true, GarbageCollector: true, Progress: os.Stderr,
			// Where lists cannot be streamed, client-go lists before it watches.
			APIServerArgs: []string{"--feature-gates=WatchList=false"}})
		if err != nil {
			return 1, err
		}
		defer world.Stop()
		if code = m.Run(); code != 0 {
			world.KeepLogs()
			fmt.Fprintln(os.Stderr, "logs of the API server:", world.LogDir())
		}
		return code, nil
	}))
}
