package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/move-hook/move-hook/internal/clusterctl"
	"github.com/move-hook/move-hook/internal/pivot/flow"
)

// The exit codes. A Job maps them with podFailurePolicy.
const (
	ExitDone     = 0
	ExitFindings = 1
	ExitUsage    = 2
	ExitDeferred = 3
	ExitBlocked  = 4
	ExitAPI      = 5
)

// ExitCode documents one exit code.
type ExitCode struct {
	Code          int
	Name, Meaning string
}

// ExitCodes are all exit codes in order, for help texts and the reference.
func ExitCodes() []ExitCode {
	return []ExitCode{
		{ExitDone, "done", "everything that was asked for is so"},
		{ExitFindings, "findings", "something is not as it should be; nothing was changed because of it"},
		{ExitUsage, "usage", "the command line is wrong; nothing was read or changed"},
		{ExitDeferred, "deferred", "something is still awaited, or the command was interrupted: run it again"},
		{ExitBlocked, "blocked", "going on would do harm: resolve the reasons given first, running it again does not help"},
		{ExitAPI, "failed", "an API server or clusterctl failed or could not be reached"},
	}
}

// usageError is a command line that cannot be run.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// flagError says what a flag's value is to be, where the parser's words do not.
func flagError(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	want := map[string]string{"duration": "a duration such as 30s or 5m", "int": "a number", "bool": "true or false"}
	kind := invalid.GetFlag().Value.Type()
	return fmt.Errorf("--%s %s: expected %s", invalid.GetFlag().Name, invalid.GetValue(), cmp.Or(want[kind], kind))
}

// noSuchCommand refuses arguments of the root: they are commands that do not exist.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("unknown command %q%s", args[0], hint)
}

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// codeOf is the exit code of a command that ran: outcome where it could judge,
// else the kind of error.
func codeOf(outcome flow.Outcome, err error) int {
	var usage usageError
	var run *clusterctl.RunError
	switch {
	case err == nil:
		return codeOfOutcome(outcome)
	case errors.As(err, &usage), errors.Is(err, flow.ErrUsage):
		return ExitUsage
	case errors.Is(err, context.Canceled), errors.As(err, &run) && run.Interrupted:
		return ExitDeferred
	}
	return ExitAPI
}

func codeOfOutcome(o flow.Outcome) int {
	switch o {
	case flow.Done:
		return ExitDone
	case flow.Findings:
		return ExitFindings
	case flow.Deferred:
		return ExitDeferred
	case flow.Blocked:
		return ExitBlocked
	}
	// An outcome that nobody knows must not pass for success.
	return ExitAPI
}

// oneLine makes an error one line: a message of several lines (some servers and
// webhooks send them) is joined, not cut.
func oneLine(err error) string {
	var parts []string
	// flow.ErrUsage is a mark for the exit code, not a word for people.
	text := strings.TrimSuffix(err.Error(), ": "+flow.ErrUsage.Error())
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			parts = append(parts, line)
		}
	}
	return strings.Join(parts, "; ")
}
