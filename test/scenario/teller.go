package scenario

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/move-hook/move-hook/internal/report"
	"github.com/move-hook/move-hook/test/stack"
)

// Teller shows a pivot to people: numbered steps with the time that has passed, the
// commands with their output, and what was proved.
type Teller struct {
	Out   io.Writer
	style report.Style
	begin time.Time
	step  int
}

// NewTeller begins a story now.
func NewTeller(out *os.File) *Teller {
	return &Teller{Out: out, begin: time.Now(),
		style: report.Style{Color: term.IsTerminal(int(out.Fd())) && os.Getenv("NO_COLOR") == ""}}
}

// Title begins a step.
func (t *Teller) Title(format string, args ...any) {
	t.step++
	fmt.Fprintf(t.Out, "\n%d. %s  [%s]\n", t.step, fmt.Sprintf(format, args...), time.Since(t.begin).Round(time.Second))
}

// Hook shows a command line of move-hook and runs it, its output passed through. Any
// exit code but 0 is an error.
func (t *Teller) Hook(ctx context.Context, e Env, args ...string) error {
	shown := "move-hook " + strings.Join(args, " ")
	for _, path := range []string{e.Source.Kubeconfig(), e.Target.Kubeconfig(), e.Clusterctl} {
		shown = strings.ReplaceAll(shown, filepath.Dir(path)+"/", "")
	}
	fmt.Fprintf(t.Out, "   $ %s\n", shown)
	cmd := exec.CommandContext(ctx, e.MoveHook, args...)
	cmd.Stdout, cmd.Stderr = t.Out, os.Stderr
	cmd.Env = append(os.Environ(), stack.ClusterctlEnv()...)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", shown, err)
	}
	return nil
}

// Proof shows what a pivot left behind, and says whether everything holds that has to.
// Machines were watched for `after` when all was done.
func (t *Teller) Proof(p Proof, after time.Duration) (ok bool, err error) {
	t.Title("Every Machine before and after, read from both sides' API servers")
	if _, err := report.PivotTable(t.Out, t.style, p.Before, p.After); err != nil {
		return false, err
	}
	t.Title("What has to hold (Machines were watched on both sides all the time and %s after)", after)
	for _, c := range p.Checks {
		mark := "ok"
		if !c.OK {
			mark = "FAIL"
		}
		fmt.Fprintf(t.Out, "   %-4s  %s (%s)\n", mark, c.Name, c.Detail)
	}
	failed := len(p.Failed())
	fmt.Fprintf(t.Out, "\n%d of %d hold\n", len(p.Checks)-failed, len(p.Checks))
	return failed == 0, nil
}
