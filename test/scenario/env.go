package scenario

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/move-hook/move-hook/test/stack"
)

// Management is a management cluster as a scenario needs it.
type Management interface {
	stack.API
	stack.ClusterctlUser
	// LogDir is where its processes log; named when something fails.
	LogDir() string
}

// Env is what a scenario plays on.
type Env struct {
	Source, Target Management
	// MoveHook and Clusterctl are the paths of the two programs.
	MoveHook, Clusterctl string
}

// Run is how a program ended.
type Run struct {
	// Command is the command line without paths, for people.
	Command        string
	Code           int
	Stdout, Stderr string
}

// String is the command, how it ended, and what it printed.
func (r Run) String() string {
	return fmt.Sprintf("%s: exit code %d\n--- stdout\n%s--- stderr\n%s", r.Command, r.Code, r.Stdout, r.Stderr)
}

// Hook runs move-hook and waits for its end. An error means that it could not be
// run at all; any exit code is a result.
func (e Env) Hook(ctx context.Context, args ...string) (Run, error) {
	var out, errs bytes.Buffer
	r := Run{Command: "move-hook " + strings.Join(args, " ")}
	cmd := exec.CommandContext(ctx, e.MoveHook, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = append(os.Environ(), append(stack.ClusterctlEnv(), "NO_COLOR=1")...)
	err := cmd.Run()
	r.Stdout, r.Stderr = out.String(), errs.String()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		r.Code = exit.ExitCode()
	case err != nil:
		return r, fmt.Errorf("running %s: %w", r.Command, err)
	}
	return r, nil
}
