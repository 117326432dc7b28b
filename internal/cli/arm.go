package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/move-hook/move-hook/internal/pivot"
	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/internal/report"
)

type armOptions struct {
	sides
	scope
	output
	selector   string
	expires    time.Duration
	holdOwners bool
	with       string
	dryRun     bool
	flags      *pflag.FlagSet
}

// The ways to arm.
const (
	withPolicy    = "policy"
	withScaleDown = "scale-down"
)

func (a *app) arm() *cobra.Command {
	var o armOptions
	cmd := &cobra.Command{
		Use:   "arm",
		Short: "Make the target hold and label what arrives, whoever creates it",
		Long: long(`Arm runs on the target, before Clusters arrive there by a restore, from a folder
or from Git. From then on the API server itself holds every arriving Cluster,
control plane, MachineDeployment, MachineSet, MachinePool and MachineHealthCheck,
and labels control planes and their Machines for adoption, so that no controller
acts on half of a Cluster, in whatever order its objects come. What is there
already, what its user paused and what the providers' controllers create is left
alone. Arm returns when the API server does so. Running it again writes nothing.

The target is named by --to-kubeconfig or --kubeconfig; with neither it is the
current context, or in a pod the cluster of that pod.`,
			ExitDone, ExitUsage, ExitDeferred, ExitBlocked, ExitAPI),
		Example: `  # Hold what arrives in namespace fleet, which need not exist yet.
  move-hook arm --to-kubeconfig target.yaml -n fleet

  # Hold what a backup tool restores, in any namespace, for two days at most.
  move-hook arm --to-kubeconfig target.yaml -A --selector velero.io/restore-name=r1 --expires 48h

  # What arrives carries owner references of the source: keep the garbage collector off.
  move-hook arm --to-kubeconfig target.yaml -n fleet --hold-owners

  # The API server is too old for that: stop all controllers meanwhile.
  move-hook arm --to-kubeconfig target.yaml --with=scale-down`,
	}
	fs := cmd.Flags()
	o.flags = fs
	o.addTarget(fs, "the target, where Clusters will arrive")
	o.addSource(fs, "the target, where --to-kubeconfig is not given")
	fs.StringVarP(&o.namespace, "namespace", "n", "", "`namespace` to arm; empty for the one of the kubeconfig context")
	fs.BoolVarP(&o.all, "all-namespaces", "A", false, "arm all namespaces")
	fs.StringVarP(&o.selector, "selector", "l", "", "hold only objects whose labels this `selector` selects")
	fs.DurationVar(&o.expires, "expires", 24*time.Hour,
		"until when it is meant to stay: status and post tell when that is over, it works until disarm")
	fs.BoolVar(&o.holdOwners, "hold-owners", false,
		"take owner references off what arrives and keep them in an annotation; post gives them back with live UIDs")
	fs.StringVar(&o.with, "with", withPolicy,
		"the `way`: "+withPolicy+", or for API servers without that API "+withScaleDown+": the providers' Deployments are scaled to zero until post or disarm")
	fs.BoolVar(&o.dryRun, "dry-run", false, "let the server judge every write, store nothing")
	o.output.add(cmd, report.Text, report.JSON, report.YAML)
	a.run(cmd, o.validate, func(ctx context.Context, _ []string) (flow.Outcome, error) {
		return a.runArm(ctx, o)
	})
	return cmd
}

func (o *armOptions) validate(args []string) error {
	return firstError(noArgs(args), o.scope.validate(), o.oneTarget(), o.output.validate(), positive("expires", o.expires), o.way())
}

// way refuses what scaling down has no use for: it stops all controllers, and only those.
func (o *armOptions) way() error {
	switch o.with {
	case withPolicy:
		return nil
	case withScaleDown:
		for _, name := range []string{"namespace", "selector", "expires", "hold-owners"} {
			if o.flags.Changed(name) {
				return fmt.Errorf("--%s is for --with=%s: --with=%s stops every controller of the management cluster, and nothing else", name, withPolicy, withScaleDown)
			}
		}
		return nil
	}
	return fmt.Errorf("--with must be %s or %s", withPolicy, withScaleDown)
}

func (a *app) runArm(ctx context.Context, o armOptions) (flow.Outcome, error) {
	at, _, _ := o.judged()
	target, err := a.connect(at)
	if err != nil {
		return "", err
	}
	ctx, progress := a.progress(ctx, o.encoded())
	arm := pivot.Arm
	if o.with == withScaleDown {
		arm = pivot.ArmByScaleDown
	}
	result, err := arm(ctx, pivot.ArmOptions{Target: target.Cluster, Namespace: o.in(target), Selector: o.selector,
		Expires: o.expires, HoldOwners: o.holdOwners, DryRun: o.dryRun, Progress: progress.Show})
	progress.Close()
	if err != nil {
		return "", err
	}
	return result.Outcome, a.print(o.format(), result, func(w io.Writer, st report.Style) error {
		return report.Arm(w, st, result)
	})
}
