package interrupt

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/test/stack"
)

// Side names the proxy at which a run is killed.
type Side string

// Those two.
const (
	OnSource Side = "source"
	OnTarget Side = "target"
)

// Point is one write at which a run is killed.
type Point struct {
	Side Side
	N    int
	When stack.Moment
	// Verb, where it is given, has only those writes count: "create" on the target is
	// what clusterctl does first, "delete" on the source what it does then.
	Verb string
}

// String is "after target write 3", or "after target create 3".
func (p Point) String() string {
	when, what := "before", "write"
	if p.When == stack.After {
		when = "after"
	}
	if p.Verb != "" {
		what = p.Verb
	}
	return fmt.Sprintf("%s %s %s %d", when, p.Side, what, p.N)
}

// Trial is one pivot of what is in a namespace, with a proxy before each API server.
type Trial struct {
	Namespace      string
	Source, Target *stack.APIProxy
	// CutAt is the write at which the last run was killed.
	CutAt string

	hook  string
	sides [2]stack.API
	log   []string
}

// Begin starts the proxies. What the program said is logged if the test fails.
func Begin(t *testing.T, hook string, source, target stack.API, namespace string) *Trial {
	t.Helper()
	tr := &Trial{Namespace: namespace, hook: hook, sides: [2]stack.API{source, target}}
	tr.Source, tr.Target = stack.Must(stack.Proxy(source))(t), stack.Must(stack.Proxy(target))(t)
	t.Cleanup(func() {
		tr.Source.Close()
		tr.Target.Close()
		if t.Failed() {
			t.Log(strings.Join(tr.log, "\n"))
		}
	})
	return tr
}

// Args are those of a command on both sides.
func (tr *Trial) Args(verb string, more ...string) []string {
	return append([]string{verb, "--kubeconfig", tr.Source.Kubeconfig(), "--to-kubeconfig", tr.Target.Kubeconfig(), "-n", tr.Namespace}, more...)
}

// Command is the program, and what it will have printed. It finds no clusterctl and
// takes the linked one, which dies with it.
func (tr *Trial) Command(ctx context.Context, args ...string) (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.CommandContext(ctx, tr.hook, args...)
	cmd.Env = append(os.Environ(), append(stack.ClusterctlEnv(), "PATH=/nowhere")...)
	out := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	return cmd, out
}

// Run runs the program with a deadline, and kills it at the point if there is one.
// The exit code of a killed one is -1.
func (tr *Trial) Run(t *testing.T, at *Point, args ...string) (code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd, out := tr.Command(ctx, args...)
	if at == nil {
		_ = cmd.Run() // its exit code is what counts
		tr.Note(args[0], cmd, out)
		return cmd.ProcessState.ExitCode()
	}
	proxy := tr.Source
	if at.Side == OnTarget {
		proxy = tr.Target
	}
	cut := proxy.CutAtVerb(at.Verb, at.N, at.When)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	select {
	case <-cut:
		_ = cmd.Process.Kill()
		<-ended
	case <-ended:
	}
	tr.CutAt = proxy.WasCutAt().String()
	if err := proxy.Heal(); err != nil {
		t.Fatal(err)
	}
	tr.expireLeases(t)
	tr.Note(fmt.Sprintf("%s, killed %s: %s", args[0], at, tr.CutAt), cmd, out)
	return cmd.ProcessState.ExitCode()
}

// Note keeps what a run printed.
func (tr *Trial) Note(what string, cmd *exec.Cmd, out *bytes.Buffer) {
	tr.log = append(tr.log, fmt.Sprintf("--- %s: exit code %d\n%s", what, cmd.ProcessState.ExitCode(), out))
}

// Said is what the last run printed.
func (tr *Trial) Said() string { return tr.log[len(tr.log)-1] }

// expireLeases lets the time pass that a killed holder's Lease has left.
func (tr *Trial) expireLeases(t *testing.T) {
	t.Helper()
	for _, m := range tr.sides {
		err := m.Client().DeleteAllOf(t.Context(), &coordinationv1.Lease{}, client.InNamespace(tr.Namespace))
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
}
