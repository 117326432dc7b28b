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

func TestP1P2P3P5_WrappedMove(t *testing.T) {
	ctx, key := t.Context(), ready(t, "wrapped")
	p, err := scenario.Pivot(ctx, world.env, key, settled(), func(context.Context) error {
		hook(t, 0, "move", "--kubeconfig", world.source.Kubeconfig(), "--to-kubeconfig", world.target.Kubeconfig(),
			"-n", key.Namespace, "--clusterctl", world.env.Clusterctl, "--watch-after", "10s")
		return nil
	})
	prove(t, p, err)

	again := hook(t, 0, "move", "--kubeconfig", world.source.Kubeconfig(), "--to-kubeconfig", world.target.Kubeconfig(),
		"-n", key.Namespace, "--clusterctl", world.env.Clusterctl)
	if !strings.Contains(again.Stdout, "nothing left to do") {
		t.Errorf("a move that is done should say so:\n%s", again)
	}
}

func TestP1_PostStartedBeforeTheMove(t *testing.T) {
	ctx, key := t.Context(), ready(t, "early")
	proxy := stack.Must(stack.Proxy(world.target))(t)
	defer proxy.Close()
	p, err := scenario.Pivot(ctx, world.env, key, settled(), func(ctx context.Context) error {
		type end struct {
			run scenario.Run
			err error
		}
		ended := make(chan end, 1)
		go func() {
			r, err := world.env.Hook(ctx, "post", "--to-kubeconfig", proxy.Kubeconfig(), "-n", key.Namespace, "--timeout", "4m", "--watch-after", "10s")
			ended <- end{r, err}
		}()
		waitFor(t, time.Minute, "post to look at the target", func() bool { return len(proxy.Requests()) > 10 })
		hook(t, 0, "pre", "--kubeconfig", world.source.Kubeconfig(), "-n", key.Namespace)
		if writes := writesOf(proxy); len(writes) > 0 {
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
func writesOf(p *stack.APIProxy) []string {
	var out []string
	for _, r := range p.Mutating() {
		if r.Resource != "events" {
			out = append(out, r.String())
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
