// Command demo performs a real pivot on this machine: two real management
// clusters, a real workload cluster, upstream's controllers and clusterctl, and
// move-hook before and after. It prints what a person needs to believe it and
// exits 1 if anything does not hold.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/move-hook/move-hook/test/scenario"
	"github.com/move-hook/move-hook/test/stack"
)

func main() {
	hook := flag.String("move-hook", "", "path of the move-hook binary")
	after := flag.Duration("watch", time.Minute, "how long Machines are watched after everything is done")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := run(ctx, scenario.NewTeller(os.Stdout), *hook, *after)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(ctx context.Context, t *scenario.Teller, hook string, after time.Duration) (ok bool, err error) {
	hook, err = filepath.Abs(hook)
	if err != nil {
		return false, err
	}
	t.Title("Two management clusters: etcd, API server, garbage collector, Cluster API's controllers; one cloud")
	source, target, stop, err := stack.Pair(ctx, stack.Options{Progress: os.Stderr})
	if err != nil {
		return false, err
	}
	defer stop()
	defer func() {
		if !ok && !errors.Is(ctx.Err(), context.Canceled) {
			source.KeepLogs()
			target.KeepLogs()
			fmt.Fprintf(t.Out, "\nlogs of every process: %s, %s\n", source.LogDir(), target.LogDir())
		}
	}()
	t.Title("A workload cluster on the source: 3 control-plane Machines, 2 workers")
	key, err := stack.Cluster("c1").InNamespace("fleet").ControlPlane(3).Workers("md-0", 2).HealthCheck().Create(ctx, source)
	if err != nil {
		return false, err
	}
	if err := stack.WaitReady(ctx, source, key); err != nil {
		return false, err
	}
	fmt.Fprintf(t.Out, "   Cluster %s is Available; its ownership graph:\n\n", key)
	env := scenario.Env{Source: source, Target: target, MoveHook: hook, Clusterctl: source.Clusterctl()}
	if err := t.Hook(ctx, env, "graph", "--kubeconfig", source.Kubeconfig(), "-n", key.Namespace, "-o", "tree"); err != nil {
		return false, err
	}

	t.Title("The pivot: pre, clusterctl move, post, verify")
	proof, err := scenario.Pivot(ctx, env, key, after, func(ctx context.Context) error {
		return t.Hook(ctx, env, "move", "--kubeconfig", source.Kubeconfig(), "--to-kubeconfig", target.Kubeconfig(),
			"-n", key.Namespace, "--clusterctl", env.Clusterctl)
	})
	if err != nil {
		return false, err
	}

	return t.Proof(proof, after)
}
