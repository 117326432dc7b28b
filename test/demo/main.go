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
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/move-hook/move-hook/internal/report"
	"github.com/move-hook/move-hook/test/scenario"
	"github.com/move-hook/move-hook/test/stack"
)

func main() {
	hook := flag.String("move-hook", "", "path of the move-hook binary")
	after := flag.Duration("watch", time.Minute, "how long Machines are watched after everything is done")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	d := demo{out: os.Stdout, begin: time.Now(), style: report.Style{Color: term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == ""}}
	ok, err := d.run(ctx, *hook, *after)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

type demo struct {
	out   io.Writer
	begin time.Time
	style report.Style
	step  int
}

func (d *demo) title(format string, args ...any) {
	d.step++
	fmt.Fprintf(d.out, "\n%d. %s  [%s]\n", d.step, fmt.Sprintf(format, args...), time.Since(d.begin).Round(time.Second))
}

func (d *demo) run(ctx context.Context, hook string, after time.Duration) (ok bool, err error) {
	hook, err = filepath.Abs(hook)
	if err != nil {
		return false, err
	}
	d.title("Two management clusters: etcd, API server, garbage collector, Cluster API's controllers; one cloud")
	source, target, stop, err := stack.Pair(ctx, stack.Options{Progress: os.Stderr})
	if err != nil {
		return false, err
	}
	defer stop()
	defer func() {
		if !ok && !errors.Is(ctx.Err(), context.Canceled) {
			source.KeepLogs()
			target.KeepLogs()
			fmt.Fprintf(d.out, "\nlogs of every process: %s, %s\n", source.LogDir(), target.LogDir())
		}
	}()
	d.title("A workload cluster on the source: 3 control-plane Machines, 2 workers")
	key, err := stack.Cluster("c1").InNamespace("fleet").ControlPlane(3).Workers("md-0", 2).HealthCheck().Create(ctx, source)
	if err != nil {
		return false, err
	}
	if err := stack.WaitReady(ctx, source, key); err != nil {
		return false, err
	}
	fmt.Fprintf(d.out, "   Cluster %s is Available; its ownership graph:\n\n", key)
	env := scenario.Env{Source: source, Target: target, MoveHook: hook, Clusterctl: source.Clusterctl()}
	if err := d.command(ctx, env, "graph", "--kubeconfig", source.Kubeconfig(), "-n", key.Namespace, "-o", "tree"); err != nil {
		return false, err
	}

	d.title("The pivot: pre, clusterctl move, post, verify")
	proof, err := scenario.Pivot(ctx, env, key, after, func(ctx context.Context) error {
		return d.command(ctx, env, "move", "--kubeconfig", source.Kubeconfig(), "--to-kubeconfig", target.Kubeconfig(),
			"-n", key.Namespace, "--clusterctl", env.Clusterctl)
	})
	if err != nil {
		return false, err
	}

	d.title("Every Machine before and after, read from both sides' API servers")
	if _, err := report.PivotTable(d.out, d.style, proof.Before, proof.After); err != nil {
		return false, err
	}
	d.title("What has to hold (Machines were watched on both sides all the time and %s after)", after)
	for _, c := range proof.Checks {
		mark := "ok"
		if !c.OK {
			mark = "FAIL"
		}
		fmt.Fprintf(d.out, "   %-4s  %s (%s)\n", mark, c.Name, c.Detail)
	}
	failed := len(proof.Failed())
	fmt.Fprintf(d.out, "\n%d of %d hold\n", len(proof.Checks)-failed, len(proof.Checks))
	return failed == 0, nil
}

// command shows a command line and runs it, its output passed through.
func (d *demo) command(ctx context.Context, e scenario.Env, args ...string) error {
	shown := "move-hook " + strings.Join(args, " ")
	for _, path := range []string{e.Source.Kubeconfig(), e.Target.Kubeconfig(), e.Clusterctl} {
		shown = strings.ReplaceAll(shown, filepath.Dir(path)+"/", "")
	}
	fmt.Fprintf(d.out, "   $ %s\n", shown)
	cmd := exec.CommandContext(ctx, e.MoveHook, args...)
	cmd.Stdout, cmd.Stderr = d.out, os.Stderr
	cmd.Env = append(os.Environ(), stack.ClusterctlEnv()...)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", shown, err)
	}
	return nil
}
