package scenario_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/move-hook/move-hook/test/scenario"
	"github.com/move-hook/move-hook/test/stack"
)

// world is the pair of management clusters that all tests of this package share,
// each in a namespace of its own.
var world struct {
	source, target *stack.Management
	env            scenario.Env
}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "move-hook-scenario-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	hook := filepath.Join(dir, "move-hook")
	build := exec.Command("go", "build", "-o", hook, "github.com/move-hook/move-hook/cmd/move-hook")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "building move-hook:", err)
		return 1
	}
	source, target, stop, err := stack.Pair(ctx, stack.Options{Progress: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer stop()
	world.source, world.target = source, target
	world.env = scenario.Env{Source: source, Target: target, MoveHook: hook, Clusterctl: source.Clusterctl()}
	code := m.Run()
	if code != 0 {
		source.KeepLogs()
		target.KeepLogs()
		fmt.Fprintf(os.Stderr, "logs of the source: %s\nlogs of the target: %s\n", source.LogDir(), target.LogDir())
	}
	return code
}

// soak says whether a long series is to run whole (make soak) or as a sample.
func soak() bool { return os.Getenv("MOVE_HOOK_SOAK") != "" }

// hook runs move-hook and demands an exit code.
func hook(t *testing.T, code int, args ...string) scenario.Run {
	t.Helper()
	r, err := world.env.Hook(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	if r.Code != code {
		t.Fatalf("want exit code %d\n%s", code, r)
	}
	return r
}
