package scenario_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/move-hook/move-hook/test/scenario"
	"github.com/move-hook/move-hook/test/stack"
)

// settled is how long Machines are watched after the end: the whole minute in a soak.
func settled() time.Duration {
	if soak() {
		return time.Minute
	}
	return 15 * time.Second
}

func prove(t *testing.T, p scenario.Proof, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range p.Failed() {
		t.Errorf("%s: %s", c.Name, c.Detail)
	}
	if diff := cmp.Diff(p.Before, p.After); diff != "" {
		t.Errorf("Machines before and after:\n%s", diff)
	}
	if len(p.Before) == 0 {
		t.Error("there was no Machine: nothing was proved")
	}
}

func TestP1P2P3_WrappedMove(t *testing.T) {
	ctx := t.Context()
	key, err := stack.Cluster("wrapped").InNamespace("wrapped").ControlPlane(3).Workers("md-0", 2).HealthCheck().Create(ctx, world.source)
	if err != nil {
		t.Fatal(err)
	}
	if err := stack.WaitReady(ctx, world.source, key); err != nil {
		t.Fatal(err)
	}
	p, err := scenario.Pivot(ctx, world.env, key, settled(), func(context.Context) error {
		hook(t, 0, "move", "--kubeconfig", world.source.Kubeconfig(), "--to-kubeconfig", world.target.Kubeconfig(),
			"-n", key.Namespace, "--clusterctl", world.env.Clusterctl, "--watch-after", "10s")
		return nil
	})
	prove(t, p, err)

	again := hook(t, 0, "move", "--kubeconfig", world.source.Kubeconfig(), "--to-kubeconfig", world.target.Kubeconfig(),
		"-n", key.Namespace, "--clusterctl", world.env.Clusterctl)
	if !strings.Contains(again.Stdout+again.Stderr, "already") {
		t.Errorf("a move that is done should say so:\n%s", again)
	}
}

func TestP1_PostStartedBeforeTheMove(t *testing.T) {
	ctx := t.Context()
	key, err := stack.Cluster("early").InNamespace("early").ControlPlane(1).Workers("md-0", 2).Create(ctx, world.source)
	if err != nil {
		t.Fatal(err)
	}
	if err := stack.WaitReady(ctx, world.source, key); err != nil {
		t.Fatal(err)
	}
	counter, err := scenario.Count(world.target)
	if err != nil {
		t.Fatal(err)
	}
	defer counter.Stop()
	counted, err := counter.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	p, err := scenario.Pivot(ctx, world.env, key, settled(), func(ctx context.Context) error {
		type end struct {
			run scenario.Run
			err error
		}
		ended := make(chan end, 1)
		go func() {
			r, err := world.env.Hook(ctx, "post", "--to-kubeconfig", counted, "-n", key.Namespace, "--timeout", "4m", "--watch-after", "10s")
			ended <- end{r, err}
		}()
		waitFor(t, time.Minute, "post to look at the target", func() bool { return counter.Total() > 10 })
		hook(t, 0, "pre", "--kubeconfig", world.source.Kubeconfig(), "-n", key.Namespace)
		if writes := writesOf(counter); len(writes) > 0 {
			t.Errorf("post wrote before anything had arrived: %v", writes)
		}
		out, err := stack.Move(ctx, world.source, world.target, key.Namespace)
		if err != nil {
			t.Fatalf("clusterctl move: %v\n%s", err, out)
		}
		e := <-ended
		if e.err == nil && e.run.Code != 0 {
			t.Errorf("want exit code 0\n%s", e.run)
		}
		return e.err
	})
	prove(t, p, err)
}

// writesOf leaves out Events: saying is not changing.
func writesOf(c *scenario.Counter) []string {
	var out []string
	for _, w := range c.Mutating() {
		if !strings.HasSuffix(w, "/events") {
			out = append(out, w)
		}
	}
	return out
}

func waitFor(t *testing.T, limit time.Duration, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited %s for %s", limit, what)
		}
	}
}
