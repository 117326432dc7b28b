package clusterctl

import (
	"fmt"
	"strings"
)

// RunError is a `clusterctl move` that did not end well.
type RunError struct {
	// CommandLine can be pasted into a shell.
	CommandLine string
	// ExitCode is clusterctl's; -1 where it has none (killed, never started, linked library).
	ExitCode int
	// LastLines are the last lines that it wrote to stderr, oldest first.
	LastLines []string
	// Interrupted: it was stopped from outside, so the move may be half done.
	Interrupted bool
	// Err is the cause below: the operating system's or the library's.
	Err error
}

// Error is one line: what happened, clusterctl's last words, what to do.
func (e *RunError) Error() string {
	if e.Interrupted {
		return fmt.Sprintf("clusterctl move was interrupted, objects may be on both sides: run `move-hook status`; it was running %s", e.CommandLine)
	}
	what := fmt.Sprintf("clusterctl move exited with code %d", e.ExitCode)
	if e.ExitCode < 0 {
		what = "clusterctl move failed"
	}
	if last := e.lastWords(); last != "" {
		what += ": " + last
	}
	return fmt.Sprintf("%s; the command was %s", what, e.CommandLine)
}

// Unwrap returns the cause below.
func (e *RunError) Unwrap() error { return e.Err }

func (e *RunError) lastWords() string {
	if len(e.LastLines) > 0 {
		return strings.TrimPrefix(e.LastLines[len(e.LastLines)-1], "Error: ")
	}
	if e.Err != nil {
		return e.Err.Error()
	}
	return ""
}
