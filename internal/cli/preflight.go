package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/move-hook/move-hook/internal/pivot"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/preflight"
	"github.com/move-hook/move-hook/internal/report"
	"github.com/move-hook/move-hook/pkg/finding"
)

// ignoring is the flag --ignore of whatever runs the preflight.
type ignoring struct{ ignore []string }

func (i *ignoring) add(fs *pflag.FlagSet) {
	fs.StringSliceVar(&i.ignore, "ignore", nil,
		"`ID` of findings of the preflight that you accept; may be repeated. What clusterctl itself refuses cannot be ignored")
}

func (i *ignoring) validate() error { return preflight.CheckIgnore(i.ignore) }

// offering is the flag --offer of whatever runs the preflight with a target.
type offering struct{ offer bool }

func (o *offering) add(fs *pflag.FlagSet) {
	fs.BoolVar(&o.offer, "offer", true, "offer everything that moves to the target in a dry run, to learn what it would refuse")
}

type preflightOptions struct {
	sides
	scope
	output
	ignoring
	offering
	failOn, printRole string
	rollouts          bool
}

func (a *app) preflight() *cobra.Command {
	var o preflightOptions
	cmd := &cobra.Command{
		Use:   "preflight [CLUSTER...]",
		Short: "Name everything that would go wrong in a pivot, changing nothing",
		Long: long(`Preflight reads the source, and the target if it is given, and names what stops a
pivot, what harms after it and what is worth knowing: each finding with the object,
what is wrong in one sentence and what to do. Nothing is written: what moves is
offered to the target in a dry run only. pre and move run the same checks first.`,
			ExitDone, ExitFindings, ExitUsage, ExitAPI),
		Example: `  # What would go wrong with the Clusters of namespace fleet?
  move-hook preflight --kubeconfig source.yaml --to-kubeconfig target.yaml -n fleet

  # For a pipeline: fail only on what stops the move, accept what is left behind.
  move-hook preflight -n fleet --fail-on stops --ignore LeftBehind -o junit

  # The rights that a pivot needs on the target, for an administrator's kubectl apply -f -.
  move-hook preflight --to-kubeconfig admin.yaml --print-role target`,
	}
	fs := cmd.Flags()
	o.addSource(fs, "the source")
	o.addTarget(fs, "the target, to check it too")
	o.scope.add(fs)
	fs.StringVar(&o.failOn, "fail-on", string(finding.Harms), "least `severity` that makes the exit code 1: "+severities())
	fs.BoolVar(&o.rollouts, "rollouts", false, "ask upstream which Machines will be replaced, for however many Clusters; without it for up to 20")
	o.ignoring.add(fs)
	o.offering.add(fs)
	fs.StringVar(&o.printRole, "print-role", "", "print the ClusterRole that a pivot needs on one `side`, source or target, and check nothing")
	o.output.add(cmd, report.Text, report.Table, report.JSON, report.YAML, report.JUnit)
	// The only error is a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions(strings.Split(severities(), ", "), cobra.ShellCompDirectiveNoFileComp))
	a.run(cmd, o.validate, func(ctx context.Context, args []string) (flow.Outcome, error) {
		return a.runPreflight(ctx, o, args)
	})
	return cmd
}

func severities() string {
	var names []string
	for _, s := range preflight.Severities() {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

func (o *preflightOptions) validate(args []string) error {
	switch o.printRole {
	case "", string(preflight.Source), string(preflight.Target):
	default:
		return fmt.Errorf("--print-role %q: there are %s and %s", o.printRole, preflight.Source, preflight.Target)
	}
	known := false
	for _, s := range preflight.Severities() {
		known = known || string(s) == o.failOn
	}
	if !known {
		return fmt.Errorf("--fail-on %q: there are %s", o.failOn, severities())
	}
	return firstError(o.scope.validate(), o.checkNames(args), o.output.validate(), o.ignoring.validate())
}

// runRole prints a ClusterRole instead of findings.
func (a *app) runRole(ctx context.Context, o preflightOptions) (flow.Outcome, error) {
	side, at := preflight.Side(o.printRole), o.source
	if side == preflight.Target && o.target.given() {
		at = o.target
	}
	c, err := a.connect(at)
	if err != nil {
		return "", err
	}
	role, err := pivot.Role(ctx, c.Cluster, side)
	if err != nil {
		return "", err
	}
	_, err = io.WriteString(a.Out, role)
	return flow.Done, err
}

func (a *app) runPreflight(ctx context.Context, o preflightOptions, args []string) (flow.Outcome, error) {
	if o.printRole != "" {
		return a.runRole(ctx, o)
	}
	source, err := a.connect(o.source)
	if err != nil {
		return "", err
	}
	options := pivot.PreflightOptions{Source: source.Cluster, Namespace: o.in(source), FailOn: finding.Severity(o.failOn), Ignore: o.ignore,
		Offer: o.offer, Rights: true, Rollouts: o.rollouts}
	if options.Names, err = o.names(args, o.in(source)); err != nil {
		return "", usageError{err}
	}
	if options.Target, err = a.connectIfGiven(o.target); err != nil {
		return "", err
	}
	ctx, progress := a.progress(ctx, o.encoded())
	options.Progress = progress.Show
	result, err := pivot.Preflight(ctx, options)
	progress.Close()
	if err != nil {
		return "", err
	}
	return result.Outcome, a.print(o.format(), result, func(w io.Writer, st report.Style) error {
		switch o.format() {
		case report.JUnit:
			return report.PreflightJUnit(w, result)
		case report.Table:
			return report.PreflightTable(w, st, result)
		case report.Text, report.Tree, report.JSON, report.YAML:
		}
		return report.Preflight(w, st, result)
	})
}
