package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/move-hook/move-hook/internal/pivot"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/report"
)

type statusOptions struct {
	sides
	scope
	output
	recordFile string
}

func (a *app) status() *cobra.Command {
	var o statusOptions
	cmd := &cobra.Command{
		Use:   "status [CLUSTER...]",
		Short: "Say where the pivot of each Cluster stands and what to do next",
		Long: long(`Status looks at the source, at the target, or at both, and says for every Cluster
how far its pivot is and which command comes next. It only reads.`,
			ExitDone, ExitUsage, ExitBlocked, ExitAPI),
		Example: `  move-hook status --kubeconfig source.yaml --to-kubeconfig target.yaml -n fleet

  # Only the target can still be reached.
  move-hook status --to-kubeconfig target.yaml -n fleet c1`,
	}
	fs := cmd.Flags()
	o.addSource(fs, "the source")
	o.addTarget(fs, "the target")
	o.scope.add(fs)
	fs.StringVar(&o.recordFile, "record", "", "`file` with the record, where neither side has it")
	o.output.add(cmd, report.Text, report.JSON, report.YAML)
	a.run(cmd, o.validate, func(ctx context.Context, args []string) (flow.Outcome, error) {
		return a.runStatus(ctx, o, args)
	})
	return cmd
}

func (o *statusOptions) validate(args []string) error {
	return firstError(o.scope.validate(), o.checkNames(args), o.output.validate())
}

func (a *app) runStatus(ctx context.Context, o statusOptions, args []string) (flow.Outcome, error) {
	if err := readable("--record", o.recordFile); err != nil {
		return "", err
	}
	options := pivot.StatusOptions{RecordFile: o.recordFile}
	var at connection
	var err error
	if o.target.given() {
		if at, err = a.connect(o.target); err != nil {
			return "", err
		}
		options.Target = at.Cluster
	}
	if o.source.given() || !o.target.given() {
		if at, err = a.connect(o.source); err != nil {
			return "", err
		}
		options.Source = at.Cluster
	}
	options.Namespace = o.in(at)
	if options.Names, err = o.names(args, o.in(at)); err != nil {
		return "", usageError{err}
	}
	result, err := pivot.Status(ctx, options)
	if err != nil {
		return "", err
	}
	return result.Outcome, a.print(o.format(), result, func(w io.Writer, st report.Style) error {
		return report.Status(w, st, result)
	})
}
