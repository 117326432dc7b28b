package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/move-hook/move-hook/internal/pivot"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/report"
)

type rollbackOptions struct {
	sides
	scope
	output
	policy
	recordFile string
	gone       bool
	timeout    time.Duration
	dryRun     bool
}

func (a *app) rollback() *cobra.Command {
	var o rollbackOptions
	cmd := &cobra.Command{
		Use:   "rollback",
		Short: "Undo a pivot of a namespace that has not been adopted yet",
		Long: long(`Rollback gives the source back what it was before pre. What is missing there is
made again from the target's copies, with the annotations that clusterctl's
deletion destroyed; the target's copies are removed without touching what they
stand for; label, holds, guard and record of the source go, and it is reconciled
again unless its user had paused it. It may be killed anywhere and run again.

It refuses, and changes nothing, where it cannot give back everything: when adoption
on the target has finished, when an object is on neither side, when a Machine was
made on the target. Nothing is unpaused before the target was read and found paused
or empty; where it is gone for good, say --other-side-is-gone.`,
			ExitDone, ExitFindings, ExitUsage, ExitDeferred, ExitBlocked, ExitAPI),
		Example: `  move-hook rollback -n fleet --kubeconfig source.yaml --to-kubeconfig target.yaml

  # See what would be done.
  move-hook rollback -n fleet --kubeconfig source.yaml --to-kubeconfig target.yaml --dry-run`,
		Args: cobra.NoArgs,
	}
	fs := cmd.Flags()
	o.addSource(fs, "the source")
	o.addTarget(fs, "the target")
	o.scope.addNamespace(fs)
	fs.BoolVar(&o.gone, "other-side-is-gone", false, "a target that cannot be read is gone for good and nothing reconciles there")
	fs.StringVar(&o.recordFile, "record", "", "`file` with the record, where neither side has it")
	fs.DurationVar(&o.timeout, "timeout", 30*time.Minute, "how long to wait for the status of what was made again; 0 waits for ever")
	o.policy.add(fs)
	fs.BoolVar(&o.dryRun, "dry-run", false, "say what would be done, change nothing")
	o.output.add(cmd, report.Text, report.JSON, report.YAML)
	a.run(cmd, o.validate, func(ctx context.Context, _ []string) (flow.Outcome, error) { return a.runRollback(ctx, o) })
	return cmd
}

func (o *rollbackOptions) validate([]string) error {
	switch {
	case !o.target.given() && !o.gone:
		return fmt.Errorf("--to-kubeconfig (or --to-kubeconfig-context) is needed, or --other-side-is-gone")
	case o.target.given() && o.source == o.target:
		return fmt.Errorf("source and target are the same: give --kubeconfig and --to-kubeconfig, or two contexts")
	}
	return firstError(o.scope.validate(), o.output.validate(), o.policy.validate(), notNegative("timeout", o.timeout))
}

func (a *app) runRollback(ctx context.Context, o rollbackOptions) (flow.Outcome, error) {
	if err := readable("--record", o.recordFile); err != nil {
		return "", err
	}
	source, err := a.connect(o.source)
	if err != nil {
		return "", err
	}
	options := pivot.RollbackOptions{Source: source.Cluster, OtherSideGone: o.gone, Namespace: o.in(source), RecordFile: o.recordFile,
		DryRun: o.dryRun, Policy: o.policy.Policy, Timeout: o.timeout}
	if options.Target, err = a.connectIfGiven(o.target); err != nil {
		return "", err
	}
	ctx, progress := a.progress(ctx, o.encoded())
	options.Progress = progress.Show
	result, err := pivot.Rollback(ctx, options)
	progress.Close()
	if err != nil {
		return "", err
	}
	return result.Outcome, a.print(o.format(), result, func(w io.Writer, st report.Style) error {
		return report.Rollback(w, st, result)
	})
}
