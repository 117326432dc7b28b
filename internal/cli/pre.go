package cli

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/move-hook/move-hook/internal/pivot"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/report"
)

type preOptions struct {
	sides
	scope
	output
	ignoring
	offering
	recordFile string
	timeout    time.Duration
	dryRun     bool
}

func (a *app) pre() *cobra.Command {
	var o preOptions
	cmd := &cobra.Command{
		Use:   "pre [CLUSTER...]",
		Short: "Record the ownership of Clusters on the source, label and hold them",
		Long: long(`Pre runs on the source, before whatever moves the Clusters: it writes down who
owns what (a record that travels with the Cluster), labels the control plane for
adoption and holds everything that creates or deletes other objects, until post
has adopted the Cluster on the target. Nothing is moved. Running it again on a
prepared source writes nothing.`,
			ExitDone, ExitFindings, ExitUsage, ExitDeferred, ExitAPI),
		Example: `  # Prepare every Cluster of namespace fleet.
  move-hook pre --kubeconfig source.yaml -n fleet

  # Prepare one Cluster and keep its record in a file as well.
  move-hook pre --kubeconfig source.yaml -n fleet c1 --record c1.record

  # See what would be written, and write nothing.
  move-hook pre --kubeconfig source.yaml -n fleet --dry-run`,
	}
	fs := cmd.Flags()
	o.addSource(fs, "the source")
	o.addTarget(fs, "the target, if it can be looked at already")
	o.scope.add(fs)
	fs.StringVar(&o.recordFile, "record", "", "`file` to write the record to as well")
	fs.DurationVar(&o.timeout, "timeout", 2*time.Minute, "how long to wait until nothing is in flight on the source")
	fs.BoolVar(&o.dryRun, "dry-run", false, "let the server judge every write, store nothing")
	o.ignoring.add(fs)
	o.offering.add(fs)
	o.output.add(cmd, report.Text, report.JSON, report.YAML)
	a.run(cmd, o.validate, func(ctx context.Context, args []string) (flow.Outcome, error) {
		return a.runPre(ctx, o, args)
	})
	return cmd
}

func (o *preOptions) validate(args []string) error {
	return firstError(o.scope.validate(), o.checkNames(args), o.output.validate(), o.ignoring.validate(), positive("timeout", o.timeout))
}

func (a *app) runPre(ctx context.Context, o preOptions, args []string) (flow.Outcome, error) {
	source, err := a.connect(o.source)
	if err != nil {
		return "", err
	}
	options := pivot.PreOptions{Source: source.Cluster, Namespace: o.in(source), RecordFile: o.recordFile,
		DryRun: o.dryRun, Timeout: o.timeout, Ignore: o.ignore, Offer: o.offer}
	if options.Names, err = o.names(args, o.in(source)); err != nil {
		return "", usageError{err}
	}
	if options.Target, err = a.connectIfGiven(o.target); err != nil {
		return "", err
	}
	ctx, progress := a.progress(ctx, o.encoded())
	options.Progress = progress.Show
	result, err := pivot.Pre(ctx, options)
	progress.Close()
	if err != nil {
		return "", err
	}
	return result.Outcome, a.print(o.format(), result, func(w io.Writer, st report.Style) error {
		return report.Pre(w, st, result)
	})
}
