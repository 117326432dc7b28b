package clusterctl

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// defaultGrace is how long clusterctl may go on after SIGINT.
const defaultGrace = 10 * time.Second

// Move runs `clusterctl move` and waits for it. Its error is a *RunError, or a
// *FlagError before anything ran. When ctx ends clusterctl gets SIGINT, and is
// killed after the grace; the error then says that it was interrupted.
func (b Binary) Move(ctx context.Context, o MoveOptions) error {
	if err := b.CheckExtra(o.Extra); err != nil {
		return err
	}
	if b.Linked() {
		return b.moveLinked(ctx, o)
	}
	return b.run(ctx, o)
}

func (b Binary) run(ctx context.Context, o MoveOptions) error {
	var mu sync.Mutex
	stdout, stderr := &lines{mu: &mu, to: o.Stdout}, &lines{mu: &mu, to: o.Stderr}
	cmd := exec.CommandContext(ctx, b.Path, arguments(o)...)
	cmd.Env = environ(os.Environ())
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = cmp.Or(o.Grace, defaultGrace)

	err := cmd.Run()
	stdout.Flush()
	stderr.Flush()
	if err == nil {
		return nil
	}
	failed := &RunError{CommandLine: b.CommandLine(o), ExitCode: -1, LastLines: stderr.last, Err: err}
	if cmd.ProcessState != nil {
		failed.ExitCode = cmd.ProcessState.ExitCode()
		failed.Interrupted = ctx.Err() != nil || signaled(err)
	}
	return failed
}

// signaled: somebody else stopped clusterctl (a terminal's ^C reaches it as well
// as us, or a kill).
func signaled(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled()
}
