package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/internal/pivot"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/report"
	"github.com/move-hook/move-hook/internal/watch"
	"github.com/move-hook/move-hook/pkg/adopt"
)

// policy are the flags that bear on decisions of post; move has them too.
type policy struct {
	adopt.Policy
	flags *pflag.FlagSet
}

func (p *policy) add(of *pflag.FlagSet) {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	fs.DurationVar(&p.Settle, "settle", 5*time.Second,
		"without a record: how long nothing new may have arrived before a Cluster counts as complete")
	fs.DurationVar(&p.WatchAfter, "watch-after", 30*time.Second,
		"how long to check after the release that no Machine appears or goes")
	fs.IntVar(&p.MaxVersionSkew, "max-version-skew", 0,
		"adopt although a Machine's Kubernetes version differs from its control plane's by up to this many `minors` (0 or 1)")
	fs.BoolVar(&p.AllowScale, "allow-scale", false,
		"adopt although spec.replicas differs from the Machines found: Machines will be created or deleted")
	fs.BoolVar(&p.AllowRollout, "allow-rollout", false,
		"adopt although the control plane will replace Machines afterwards")
	fs.BoolVar(&p.PruneDangling, "prune-dangling", false,
		"remove owner references to objects that do not exist")
	p.flags = fs
	of.AddFlagSet(fs)
}

// args are those that were given, for a post elsewhere.
func (p policy) args() (args []string) {
	p.flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			args = append(args, "--"+f.Name+"="+f.Value.String())
		}
	})
	return args
}

func (p policy) validate() error {
	switch {
	case p.Settle < 0:
		return fmt.Errorf("--settle must not be negative")
	case p.WatchAfter < 0:
		return fmt.Errorf("--watch-after must not be negative")
	case p.MaxVersionSkew < 0 || p.MaxVersionSkew > 1:
		return fmt.Errorf("--max-version-skew must be 0 or 1: upstream adopts over one minor at most")
	}
	return nil
}

type postOptions struct {
	sides
	scope
	output
	policy
	recordFile    string
	expectDir     string
	adoptUnmarked bool
	disarm        bool
	timeout       time.Duration
	dryRun        bool
	explain       bool
	shard         shard
	termination   termination
	serving
}

func (a *app) post() *cobra.Command {
	var o postOptions
	cmd := &cobra.Command{
		Use:   "post [CLUSTER...]",
		Short: "Wait on the target until a Cluster is complete, repair its owners, release it",
		Long: long(`Post runs on the target. For every Cluster that takes part in a pivot it waits
until all its objects are there, repairs owner references, clears the adoption
label and the holds, and watches that no Machine appears or goes. It may be
started before the pivot, be killed at any time and run again.

The target is named by --to-kubeconfig; --kubeconfig then names the source, which
is only read. With --kubeconfig alone that is the target; with neither it is the
current context, or in a pod the cluster of that pod.

With --watch it stays until it is interrupted and adopts Clusters as they come.`,
			ExitDone, ExitUsage, ExitDeferred, ExitBlocked, ExitAPI),
		Example: `  # Adopt what arrives in namespace fleet, for an hour at most.
  move-hook post --to-kubeconfig target.yaml -n fleet --timeout 1h

  # See what would be written, and write nothing.
  move-hook post --to-kubeconfig target.yaml -n fleet --dry-run

  # Adopt one Cluster after a restore, from a record that was kept in a file.
  move-hook post --to-kubeconfig target.yaml fleet/c1 --record c1.record

  # Adopt what clusterctl move --from-directory creates, by what the folder tells.
  move-hook post --to-kubeconfig target.yaml -n fleet --expect backup/

  # Adopt a large fleet as the second of four that divide it among them.
  move-hook post -A --shard-count 4 --shard-index 1

  # Adopt whatever arrives, as one of several that stand in for each other.
  move-hook post -A --watch --leader-elect`,
	}
	fs := cmd.Flags()
	o.addTarget(fs, "the target, where Clusters arrive")
	o.addSource(fs, "the source, if it can still be reached")
	o.scope.add(fs)
	fs.DurationVar(&o.timeout, "timeout", 30*time.Minute, "how long to wait; 0 waits for ever")
	o.policy.add(fs)
	fs.StringVar(&o.recordFile, "record", "", "`file` with the record, where the Clusters did not bring theirs along")
	fs.StringVar(&o.expectDir, "expect", "",
		"`directory` of clusterctl move --to-directory to expect the Clusters of, where there is no record")
	fs.BoolVar(&o.adoptUnmarked, "adopt-unmarked", false,
		"adopt also Clusters without record, adoption label or hold")
	fs.BoolVar(&o.disarm, "disarm", false, "remove the arm of these namespaces when everything is adopted")
	fs.BoolVar(&o.dryRun, "dry-run", false, "let the server judge every write, store nothing")
	fs.BoolVar(&o.explain, "explain", false, "print every check of each Cluster with what was compared, also where all is fine")
	o.shard.add(fs, a.env("JOB_COMPLETION_INDEX"))
	o.termination.add(fs)
	o.serving.add(fs)
	o.output.add(cmd, report.Text, report.JSON, report.YAML)
	a.run(cmd, o.validate, func(ctx context.Context, args []string) (flow.Outcome, error) {
		summary, outcome, err := a.runPost(ctx, o, args)
		if err != nil {
			summary = oneLine(err)
		}
		return outcome, errors.Join(err, o.termination.leave(summary))
	})
	return cmd
}

func (o *postOptions) validate(args []string) error {
	if o.recordFile != "" && o.expectDir != "" {
		return fmt.Errorf("--record and --expect contradict each other: give one thing to expect")
	}
	if o.adoptUnmarked && len(args) > 0 {
		return fmt.Errorf("--adopt-unmarked is for all Clusters in scope: a Cluster that is named is adopted anyway")
	}
	if o.disarm && o.watch {
		return fmt.Errorf("--disarm and --watch exclude each other: with --watch, Clusters go on arriving")
	}
	if o.disarm && o.shard.Count > 1 {
		return fmt.Errorf("--disarm and --shard-count exclude each other: Clusters of other shards may not be adopted yet")
	}
	return firstError(o.scope.validate(), o.checkNames(args), o.output.validate(), o.policy.validate(),
		o.shard.validate(), o.serving.validate(), notNegative("timeout", o.timeout))
}

// runPost gives the summary for the termination message as well.
func (a *app) runPost(ctx context.Context, o postOptions, args []string) (string, flow.Outcome, error) {
	at, from, hasSource := o.judged()
	target, err := a.connect(at)
	if err != nil {
		return "", "", err
	}
	options := watch.Options{
		Cluster: target.Cluster, Namespace: o.in(target), AdoptUnmarked: o.adoptUnmarked,
		Policy: o.policy.Policy, Timeout: o.timeout, DryRun: o.dryRun, Explain: o.explain, Shard: o.shard.Shard,
	}
	if options.Names, err = o.names(args, o.in(target)); err != nil {
		return "", "", usageError{err}
	}
	if options.Records, err = readRecords(o.recordFile); err != nil {
		return "", "", err
	}
	var warnings []management.Warning
	if o.expectDir != "" {
		if options.Records, warnings, err = readExpected(o.expectDir); err != nil {
			return "", "", err
		}
	}
	if hasSource {
		source, err := a.connect(from)
		if err != nil {
			return "", "", err
		}
		options.Other = source.Cluster.OtherSide
	}
	ctx, progress := a.progress(ctx, o.encoded())
	options.Progress = progress.Show
	for _, w := range warnings {
		progress.Show(flow.Update{Time: time.Now(), Message: w.String(), Warning: true})
	}
	result, err := pivot.Post(ctx, pivot.PostOptions{Target: target.Cluster, Namespace: options.Namespace, Disarm: o.disarm,
		DryRun: o.dryRun, Progress: progress.Show}, func(ctx context.Context) (watch.Result, error) { return o.serving.run(ctx, options) })
	progress.Close()
	if err != nil {
		return "", "", err
	}
	return report.Summary(result.Result, terminationLimit), result.Outcome, a.print(o.format(), result, func(w io.Writer, st report.Style) error {
		return report.Post(w, st, result.Result)
	})
}
