package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/move-hook/move-hook/internal/pivot"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/report"
)

type prefillOptions struct {
	sides
	scope
	output
	controlPlane string
	apply        bool
	allowRollout bool
	dryRun       bool
}

func (a *app) prefill() *cobra.Command {
	var o prefillOptions
	cmd := &cobra.Command{
		Use:   "prefill CLUSTER",
		Short: "Write the control plane that adopts stand-alone control-plane Machines",
		Long: long(`Prefill looks at the control-plane Machines of a Cluster that has no control
plane object, and works out the KubeadmControlPlane and the infrastructure
template that adopt them without replacing any. It asks upstream's own
comparison, and says what could not be known, in which fields the Machines
differ, and which of them would be replaced and why.

It prints both for you to look through and apply. A KubeadmControlPlane that you
made and labelled `+"`pivot.cluster.x-k8s.io/adoption: pending`"+` is filled in: what
you set stays. With --apply it writes: the template, the control plane (held, so
that it does not act), the labels, and last the Cluster's reference to it. It may
be killed at any time and run again. The Machines are adopted by move-hook post.

A Cluster with the annotation `+"`pivot.cluster.x-k8s.io/adoption: never`"+` is left alone.`,
			ExitDone, ExitFindings, ExitUsage, ExitDeferred, ExitAPI),
		Example: `  # Look at the control plane of Cluster c1 that adopts its Machines.
  move-hook prefill -n fleet c1

  # Fill in a control plane of your own, labelled for adoption.
  move-hook prefill -n fleet c1 --control-plane mine

  # Create everything, then adopt.
  move-hook prefill -n fleet c1 --apply
  move-hook post -n fleet c1`,
	}
	fs := cmd.Flags()
	o.addSource(fs, "the management cluster")
	o.addNamespace(fs)
	fs.StringVar(&o.controlPlane, "control-plane", "",
		"`name` of the control plane; empty for the one that the Cluster refers to, or CLUSTER-control-plane")
	fs.BoolVar(&o.apply, "apply", false, "write to the management cluster, instead of printing")
	fs.BoolVar(&o.allowRollout, "allow-rollout", false, "with --apply: write although Machines would be replaced after adoption")
	fs.BoolVar(&o.dryRun, "dry-run", false, "with --apply: let the server judge every write, store nothing")
	o.output.add(cmd, report.Text, report.JSON, report.YAML)
	a.run(cmd, o.validate, func(ctx context.Context, args []string) (flow.Outcome, error) {
		return a.runPrefill(ctx, o, args)
	})
	return cmd
}

func (o *prefillOptions) validate(args []string) error {
	switch {
	case len(args) != 1:
		return fmt.Errorf("give one Cluster, NAME or NAMESPACE/NAME")
	case o.dryRun && !o.apply:
		return fmt.Errorf("--dry-run is for --apply: without it nothing is written")
	case o.allowRollout && !o.apply:
		return fmt.Errorf("--allow-rollout is for --apply: without it nothing is written")
	}
	return firstError(o.checkNames(args), o.output.validate())
}

func (a *app) runPrefill(ctx context.Context, o prefillOptions, args []string) (flow.Outcome, error) {
	at, err := a.connect(o.source)
	if err != nil {
		return "", err
	}
	names, err := o.names(args, o.in(at))
	if err != nil {
		return "", usageError{err}
	}
	ctx, progress := a.progress(ctx, o.encoded() || !o.apply)
	result, err := pivot.Prefill(ctx, pivot.PrefillOptions{On: at.Cluster, Cluster: names[0], ControlPlane: o.controlPlane,
		Apply: o.apply, AllowRollout: o.allowRollout, DryRun: o.dryRun, Progress: progress.Show})
	progress.Close()
	if err != nil {
		return "", err
	}
	return result.Outcome, a.printPrefill(o, result)
}

// printPrefill keeps stdout for what can be applied; what is to be known stands in its
// comments, and goes to stderr where there can be none.
func (a *app) printPrefill(o prefillOptions, r pivot.PrefillResult) error {
	text := func(w io.Writer, st report.Style) error { return report.Prefill(w, st, r) }
	if o.apply {
		return a.print(o.format(), r, text)
	}
	if len(r.Objects) == 0 || o.format() == report.JSON {
		if err := text(a.Err, a.errStyle()); err != nil {
			return fmt.Errorf("writing the result: %w", err)
		}
	}
	if len(r.Objects) == 0 {
		return nil
	}
	if err := report.Manifest(a.Out, o.format(), r); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}
