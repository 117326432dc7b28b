package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/move-hook/move-hook/internal/pivot"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/report"
)

type disarmOptions struct {
	sides
	scope
	output
	selector string
	dryRun   bool
}

func (a *app) disarm() *cobra.Command {
	var o disarmOptions
	cmd := &cobra.Command{
		Use:   "disarm",
		Short: "Let through what arrives on the target, as before it was armed",
		Long: long(`Disarm removes what arm installed: all of it, or with -n or --selector what was
armed with the same flags. It removes the guard too, unless something is labelled
for adoption still. What arrived and is held stays held: post adopts and releases
it. Providers that arm --with=scale-down stopped are scaled up again, whatever the
scope. Running it again writes nothing.`,
			ExitDone, ExitUsage, ExitDeferred, ExitAPI),
		Example: `  # Remove every arm.
  move-hook disarm --to-kubeconfig target.yaml

  # Remove the arm of namespace fleet and leave others in place.
  move-hook disarm --to-kubeconfig target.yaml -n fleet`,
	}
	fs := cmd.Flags()
	o.addTarget(fs, "the target that is armed")
	o.addSource(fs, "the target, where --to-kubeconfig is not given")
	fs.StringVarP(&o.namespace, "namespace", "n", "", "`namespace` that was armed; empty, without --selector, for every arm there is")
	fs.BoolVarP(&o.all, "all-namespaces", "A", false, "every arm, or with --selector that of all namespaces")
	fs.StringVarP(&o.selector, "selector", "l", "", "`selector` that was given to arm")
	fs.BoolVar(&o.dryRun, "dry-run", false, "let the server judge every write, store nothing")
	o.output.add(cmd, report.Text, report.JSON, report.YAML)
	a.run(cmd, o.validate, func(ctx context.Context, _ []string) (flow.Outcome, error) {
		return a.runDisarm(ctx, o)
	})
	return cmd
}

func (o *disarmOptions) validate(args []string) error {
	return firstError(noArgs(args), o.scope.validate(), o.oneTarget(), o.output.validate())
}

func (a *app) runDisarm(ctx context.Context, o disarmOptions) (flow.Outcome, error) {
	at, _, _ := o.judged()
	target, err := a.connect(at)
	if err != nil {
		return "", err
	}
	options := pivot.DisarmOptions{Target: target.Cluster, All: o.namespace == "" && o.selector == "", Namespace: o.namespace,
		Selector: o.selector, DryRun: o.dryRun}
	if o.selector != "" {
		// As arm reads the same flags.
		options.Namespace = o.in(target)
	}
	ctx, progress := a.progress(ctx, o.encoded())
	options.Progress = progress.Show
	result, err := pivot.Disarm(ctx, options)
	progress.Close()
	if err != nil {
		return "", err
	}
	return result.Outcome, a.print(o.format(), result, func(w io.Writer, st report.Style) error {
		return report.Arm(w, st, result)
	})
}
