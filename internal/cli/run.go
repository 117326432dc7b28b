package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strconv"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/report"
)

// app is one run of the command line.
type app struct {
	Streams
	verbosity int
	logging   string // text or json
	// started: the command line was understood and a command began. Errors before
	// that are usage errors, whoever reports them.
	started bool
	outcome flow.Outcome
}

// Run runs one command line and returns its exit code. When ctx ends, commands
// stop cleanly at the next point where they may be run again.
func Run(ctx context.Context, s Streams, args []string) int {
	a := &app{Streams: s, outcome: flow.Done}
	root := a.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !a.started {
		err = usageError{err}
	}
	code := codeOf(a.outcome, err)
	if ctx.Err() != nil && code != ExitDone {
		err, code = errInterrupted, ExitDeferred
	}
	a.complain(cmd, code, err)
	return code
}

var errInterrupted = errors.New("interrupted: run the same command again to go on; 'move-hook status' says where each Cluster stands")

// complain prints the one line about what went wrong, and the one about what to do.
func (a *app) complain(cmd *cobra.Command, code int, err error) {
	if a.json() {
		if last := lastWords(code, err); last != "" {
			a.slog().Error(last, "exitCode", code)
		}
		return
	}
	switch {
	case err != nil && code == ExitUsage:
		fmt.Fprintf(a.Err, "error: %s\nSee '%s --help'\n", oneLine(err), cmd.CommandPath())
	case err != nil && !errors.Is(err, errInterrupted):
		fmt.Fprintln(a.Err, "error: "+lastWords(code, err))
	default:
		if last := lastWords(code, err); last != "" {
			fmt.Fprintln(a.Err, last)
		}
	}
}

// lastWords say in one line what went wrong, or what to do; empty where all is well.
func lastWords(code int, err error) string {
	switch {
	case err != nil:
		return oneLine(err)
	case code == ExitDeferred:
		return "Not done yet: run the same command again, it goes on where things stand"
	case code == ExitBlocked:
		return "Refused: resolve the reasons above, running the same command again does not help before that"
	}
	return ""
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:         "move-hook",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: a.calledAs()},
		Short:       "Make Cluster API pivots safe",
		Long: `move-hook runs before and after a pivot of Cluster API objects between two
management clusters, and makes sure that no controller acts on an incomplete
set, that every object is owned as it was, and that nothing is lost silently.`,
		Example: `  # Pivot every Cluster of a namespace: record, move, adopt, verify.
  move-hook move -n fleet --kubeconfig source.yaml --to-kubeconfig target.yaml

  # Look at what would move, and why.
  move-hook graph -n fleet`,
		Args:                       noSuchCommand,
		SuggestionsMinimumDistance: 2,
		SilenceErrors:              true,
		SilenceUsage:               true,
		Version:                    a.builtAs().String(),
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRun: func(*cobra.Command, []string) {
			a.started = true
		},
	}
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetVersionTemplate("{{.Version}}")
	root.PersistentFlags().IntVarP(&a.verbosity, "v", "v", 0,
		"log `level`: 0 nothing, 1 writes, 2 reads too, 4 and up what the client library does")
	root.PersistentFlags().StringVar(&a.logging, "logging-format", "text",
		"`format` of what is written to stderr: text, or json for one object a line")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	root.AddCommand(a.graph(), a.preflight(), a.pre(), a.arm(), a.move(), a.resume(), a.rollback(), a.post(), a.disarm(), a.verify(), a.status(), a.prefill(), a.version())
	return root
}

// run gives a command its two halves: what can be said of the command line alone,
// and the body, which has an outcome.
func (a *app) run(cmd *cobra.Command, validate func(args []string) error, do func(ctx context.Context, args []string) (flow.Outcome, error)) {
	cmd.PreRunE = func(_ *cobra.Command, args []string) error {
		if a.logging != "text" && !a.json() {
			return usagef("--logging-format %q: give text or json", a.logging)
		}
		if err := validate(args); err != nil {
			return usageError{err}
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		a.outcome, err = do(a.logTo(cmd.Context(), a.Err), args)
		return err
	}
}

// logTo sends every logger there is to w: the one of the context, and from -v 4 on
// klog's global one, which the client library uses. Without -v nothing is logged:
// what a person needs to know is progress, not log.
func (a *app) logTo(ctx context.Context, w io.Writer) context.Context {
	logger, global := klog.Logger{}, klog.Logger{}
	switch {
	case a.verbosity > 0 && a.json():
		logger = logr.FromSlogHandler(a.slog().Handler())
	case a.verbosity > 0:
		logger = textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(a.verbosity), textlogger.Output(w)))
	}
	if a.verbosity >= 4 {
		global = logger
	}
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	// The value is a number: Set cannot fail.
	_ = flags.Set("v", strconv.Itoa(a.verbosity))
	klog.SetLogger(global)
	return klog.NewContext(ctx, logger)
}

func (a *app) json() bool { return a.logging == "json" }

// slog writes records to stderr, each as an object on a line of its own.
func (a *app) slog() *slog.Logger {
	// The verbosity of logr is a negative level of slog.
	level := slog.Level(-a.verbosity)
	return slog.New(slog.NewJSONHandler(a.Err, &slog.HandlerOptions{Level: level}))
}

// print writes a result to stdout: as text, or encoded.
func (a *app) print(f report.Format, result any, text func(io.Writer, report.Style) error) error {
	var err error
	switch {
	case f == report.JSON, f == report.YAML:
		err = report.Encode(a.Out, f, result)
	case f == report.Text && a.json():
		a.slog().Info("Result", "result", result)
	default:
		err = text(a.Out, a.outStyle())
	}
	if err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}
