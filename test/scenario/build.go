package scenario

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// BuildMoveHook builds the program under test into a folder and returns its path.
func BuildMoveHook(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "move-hook")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/move-hook/move-hook/cmd/move-hook")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building move-hook: %w\n%s", err, out)
	}
	return path, nil
}

// WithMoveHook builds the program under test into a folder of its own, lets tests
// use it, and removes the folder. It is the body of a TestMain: an error is printed
// and counts as failed.
func WithMoveHook(ctx context.Context, tests func(hook string) (code int, err error)) int {
	dir, err := os.MkdirTemp("", "move-hook-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir) //nolint:errcheck // What stays is in the folder for temporary files.
	hook, err := BuildMoveHook(ctx, dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code, err := tests(hook)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}
