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

type verifyOptions struct {
	sides
	scope
	output
	recordFile, dir string
}

func (a *app) verify() *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use:   "verify [CLUSTER...]",
		Short: "Judge the target of a pivot, changing nothing",
		Long: long(`Verify compares what is on the target with what was on the source: with the
record that came along, or the one in a file, or a directory that clusterctl
wrote, or the source itself. Without any of them it judges by Cluster API's own
rules. It only reads.

The target is named by --to-kubeconfig; --kubeconfig then names the source. With
--kubeconfig alone that is the target.`,
			ExitDone, ExitFindings, ExitUsage, ExitAPI),
		Example: `  # Judge what arrived in namespace fleet by the records that came along.
  move-hook verify --to-kubeconfig target.yaml -n fleet

  # Compare with what clusterctl move --to-directory wrote.
  move-hook verify --to-kubeconfig target.yaml -n fleet --dir backup/

  # For a script.
  move-hook verify --to-kubeconfig target.yaml -n fleet c1 -o json`,
	}
	fs := cmd.Flags()
	o.addTarget(fs, "the target, which is judged")
	o.addSource(fs, "the source, to compare with")
	o.scope.add(fs)
	fs.StringVar(&o.recordFile, "record", "", "`file` with the record to compare with")
	fs.StringVar(&o.dir, "dir", "", "`directory` of clusterctl move --to-directory to compare with")
	o.output.add(cmd, report.Text, report.JSON, report.YAML)
	a.run(cmd, o.validate, func(ctx context.Context, args []string) (flow.Outcome, error) {
		return a.runVerify(ctx, o, args)
	})
	return cmd
}

func (o *verifyOptions) validate(args []string) error {
	if o.recordFile != "" && o.dir != "" {
		return fmt.Errorf("--record and --dir contradict each other: give one thing to compare with")
	}
	return firstError(o.scope.validate(), o.checkNames(args), o.output.validate())
}

func (a *app) runVerify(ctx context.Context, o verifyOptions, args []string) (flow.Outcome, error) {
	if err := firstError(readable("--record", o.recordFile), readable("--dir", o.dir)); err != nil {
		return "", err
	}
	at, from, hasSource := o.judged()
	target, err := a.connect(at)
	if err != nil {
		return "", err
	}
	options := pivot.VerifyOptions{Target: target.Cluster, RecordFile: o.recordFile, Dir: o.dir, Namespace: o.in(target)}
	if options.Names, err = o.names(args, o.in(target)); err != nil {
		return "", usageError{err}
	}
	if hasSource {
		source, err := a.connect(from)
		if err != nil {
			return "", err
		}
		options.Source = source.Cluster
	}
	ctx, progress := a.progress(ctx, o.encoded())
	options.Progress = progress.Show
	result, err := pivot.Verify(ctx, options)
	progress.Close()
	if err != nil {
		return "", err
	}
	return result.Outcome, a.print(o.format(), result, func(w io.Writer, st report.Style) error {
		return report.Verify(w, st, result)
	})
}
