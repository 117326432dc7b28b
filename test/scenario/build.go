package scenario

import (
	"context"
	"fmt"
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
