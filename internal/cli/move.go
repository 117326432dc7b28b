package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/move-hook/move-hook/internal/clusterctl"
	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/internal/pivot"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/record"
	"github.com/move-hook/move-hook/internal/report"
	"github.com/move-hook/move-hook/pkg/graph"
)

type moveOptions struct {
	sides
	scope
	output
	policy
	ignoring
	offering
	job        asJob
	recordFile string
	// expect is a record to read, and gone that the source is gone for good: only resume has them.
	expect     string
	gone       bool
	clusterctl string
	timeout    time.Duration
	dryRun     bool
}

func (a *app) move() *cobra.Command {
	var o moveOptions
	cmd := &cobra.Command{
		Use:   "move [-- CLUSTERCTL FLAGS]",
		Short: "Pivot the Clusters of a namespace: pre, clusterctl move, post, verify",
		Long: long(`Move runs a whole pivot: pre on the source, clusterctl move, post and verify on
the target. It uses the clusterctl on PATH, or the one named by --clusterctl, or
without either the clusterctl library that is linked in. clusterctl's output is
passed through; what stands after -- is handed to it.

Run again after an interruption it goes on where it stopped, as resume does.

With --post-as-job, post is a Job on the target, with what config/ gives it: it goes
on whatever becomes of this command, which waits for it and then verifies.`,
			ExitDone, ExitFindings, ExitUsage, ExitDeferred, ExitBlocked, ExitAPI),
		Example: `  move-hook move -n fleet --kubeconfig source.yaml --to-kubeconfig target.yaml

  # With a clusterctl of your own and flags for it.
  move-hook move -n fleet --kubeconfig source.yaml --to-kubeconfig target.yaml \
    --clusterctl ./bin/clusterctl -- --hide-api-warnings=all

  # Adopt by a Job on the target, with an image of your own registry.
  move-hook move -n fleet --kubeconfig source.yaml --to-kubeconfig target.yaml \
    --post-as-job --job-image registry.example.com/move-hook:v0.1.0

  # See what would be done, and do nothing.
  move-hook move -n fleet --kubeconfig source.yaml --to-kubeconfig target.yaml --dry-run`,
		Args: onlyAfterDash,
	}
	fs := cmd.Flags()
	o.addSource(fs, "the source")
	o.addTarget(fs, "the target")
	o.scope.addNamespace(fs)
	fs.StringVar(&o.clusterctl, "clusterctl", "", "`path` of the clusterctl to use; empty for the one on PATH, else the linked library")
	fs.StringVar(&o.recordFile, "record", "", "`file` to write the record to as well")
	fs.DurationVar(&o.timeout, "timeout", 30*time.Minute, "how long post may take; 0 waits for ever")
	o.policy.add(fs)
	o.ignoring.add(fs)
	o.offering.add(fs)
	o.job.add(fs)
	fs.BoolVar(&o.dryRun, "dry-run", false, "let the servers judge every write, move nothing")
	o.output.add(cmd, report.Text, report.JSON, report.YAML)
	a.run(cmd, o.validate, func(ctx context.Context, args []string) (flow.Outcome, error) {
		return a.runMove(ctx, o, args)
	})
	return cmd
}

// onlyAfterDash lets arguments stand after -- only: a Cluster named before it would
// look as if it were moved alone, which clusterctl cannot do.
func onlyAfterDash(cmd *cobra.Command, args []string) error {
	before := cmd.ArgsLenAtDash()
	if before < 0 {
		before = len(args)
	}
	if before > 0 {
		return fmt.Errorf("unexpected argument %q: clusterctl moves every Cluster of a namespace; flags for clusterctl stand after --", args[0])
	}
	return nil
}

func (o *moveOptions) validate([]string) error {
	if !o.target.given() {
		return fmt.Errorf("--to-kubeconfig (or --to-kubeconfig-context) is needed: where to move to")
	}
	if o.source == o.target && !o.gone {
		return fmt.Errorf("source and target are the same: give --kubeconfig and --to-kubeconfig, or two contexts")
	}
	return firstError(o.scope.validate(), o.output.validate(), o.policy.validate(), o.ignoring.validate(), o.job.validate(), notNegative("timeout", o.timeout))
}

// connectSource opens the source; the zero connection where it is gone and not named.
func (a *app) connectSource(o moveOptions) (connection, error) {
	if o.gone && !o.source.given() {
		return connection{}, nil
	}
	return a.connect(o.source)
}

func (a *app) runMove(ctx context.Context, o moveOptions, extra []string) (flow.Outcome, error) {
	binary, err := clusterctl.Find(o.clusterctl)
	if err == nil {
		err = binary.CheckExtra(extra)
	}
	if err != nil {
		return "", usageError{err}
	}
	source, err := a.connectSource(o)
	if err != nil {
		return "", err
	}
	target, err := a.connect(o.target)
	if err != nil {
		return "", err
	}
	at := source
	if source.Cluster == nil {
		at = target
	}
	ctx, progress := a.progress(ctx, o.encoded())
	stdout := progress.Around(a.Out)
	if o.encoded() {
		stdout = progress.Around(a.Err)
	}
	result, err := pivot.Move(ctx, pivot.MoveOptions{
		Source: source.side(), Target: target.side(), Namespace: o.in(at),
		OtherSideGone: o.gone, Expect: o.expect, RecordFile: o.recordFile, DryRun: o.dryRun, Clusterctl: o.clusterctl, Extra: extra,
		Stdout: stdout, Stderr: progress.Around(a.Err), Policy: o.policy.Policy, Ignore: o.ignore, Offer: o.offer, Job: o.job.options(a.builtAs().Version, o.policy.args()), Timeout: o.timeout,
		Progress: progress.Show,
	})
	progress.Close()
	if err != nil {
		return "", err
	}
	return result.Outcome, a.print(o.format(), result, func(w io.Writer, st report.Style) error {
		if err := report.Move(w, st, result); err != nil || o.dryRun {
			return err
		}
		return a.printMachines(ctx, w, st, target, adoptedBy(result))
	})
}

// adoptedBy are the Clusters that the move has adopted or tried to.
func adoptedBy(r pivot.MoveResult) (clusters []graph.ID) {
	switch {
	case r.Post != nil:
		for _, c := range r.Post.Clusters {
			clusters = append(clusters, c.Cluster)
		}
	case r.Job != nil && r.Verify != nil:
		for _, c := range r.Verify.Clusters {
			clusters = append(clusters, c.Cluster)
		}
	}
	return clusters
}

// printMachines compares the Machines that the records know with those on the
// target. It is an illustration: verify has judged already, so what cannot be
// read is said and does not change how the move ended.
func (a *app) printMachines(ctx context.Context, w io.Writer, st report.Style, target connection, clusters []graph.ID) error {
	before, after, err := machines(ctx, target, clusters)
	if err != nil {
		fmt.Fprintf(a.Err, "warning: the Machines cannot be compared: %s\n", oneLine(err))
		return nil
	}
	if len(before) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	_, err = report.PivotTable(w, st, report.MachineRows(before...), report.MachineRows(after...))
	return err
}

func machines(ctx context.Context, target connection, clusters []graph.ID) (before, after []graph.Snapshot, err error) {
	for _, c := range clusters {
		have, err := record.Read(ctx, target.Clientset().CoreV1(), c)
		if err != nil {
			return nil, nil, err
		}
		if have.Snapshot != nil {
			before = append(before, *have.Snapshot)
		}
	}
	if len(before) == 0 {
		return nil, nil, nil
	}
	g, _, err := target.Read(ctx, management.Scope{Namespace: before[0].Cluster.Namespace})
	if err != nil {
		return nil, nil, err
	}
	for _, s := range before {
		after = append(after, g.Snapshot(s.Cluster))
	}
	return before, after, nil
}
