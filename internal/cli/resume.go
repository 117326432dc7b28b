package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/report"
)

func (a *app) resume() *cobra.Command {
	var o moveOptions
	cmd := &cobra.Command{
		Use:   "resume [-- CLUSTERCTL FLAGS]",
		Short: "Finish an interrupted pivot of a namespace, wherever it stopped",
		Long: long(`Resume looks at both sides and goes on where an interrupted pivot stands, until it
is verified. As long as nothing was deleted from the source, the pauses that
clusterctl left there are taken off and clusterctl runs again. Once deletion has
begun the source is never unpaused: what is missing on the target is copied there,
the rest of the source is removed as clusterctl removes it, the target is unpaused,
adopted and verified. It may be killed anywhere and run again.

Nothing is unpaused before the other side was read and found paused or empty. Where
the source is gone for good, say --other-side-is-gone: the target then has to be
whole by its record.`,
			ExitDone, ExitFindings, ExitUsage, ExitDeferred, ExitBlocked, ExitAPI),
		Example: `  move-hook resume -n fleet --kubeconfig source.yaml --to-kubeconfig target.yaml

  # The source does not exist any more.
  move-hook resume -n fleet --to-kubeconfig target.yaml --other-side-is-gone`,
		Args: onlyAfterDash,
	}
	fs := cmd.Flags()
	o.addSource(fs, "the source")
	o.addTarget(fs, "the target")
	o.scope.addNamespace(fs)
	fs.BoolVar(&o.gone, "other-side-is-gone", false, "a source that cannot be read is gone for good and nothing reconciles there")
	fs.StringVar(&o.clusterctl, "clusterctl", "", "`path` of the clusterctl to use; empty for the one on PATH, else the linked library")
	fs.StringVar(&o.expect, "record", "", "`file` with the record, where neither side has it")
	fs.DurationVar(&o.timeout, "timeout", 30*time.Minute, "how long post may take; 0 waits for ever")
	o.policy.add(fs)
	o.ignoring.add(fs)
	fs.BoolVar(&o.dryRun, "dry-run", false, "say what would be done, change nothing")
	o.output.add(cmd, report.Text, report.JSON, report.YAML)
	a.run(cmd, o.validate, func(ctx context.Context, args []string) (flow.Outcome, error) {
		if err := readable("--record", o.expect); err != nil {
			return "", err
		}
		return a.runMove(ctx, o, args)
	})
	return cmd
}
