package interrupt_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/test/stack"
)

// trials numbers the namespaces.
var trials atomic.Int64

// trial is one pivot of a 3+2 cluster in a namespace of its own, with a proxy before
// each API server.
type trial struct {
	namespace      string
	source, target *stack.APIProxy
	// before is the source as it was before anything was done to it.
	before state
	log    []string
}

// side names the proxy at which a run is killed.
type side string

const (
	onSource side = "source"
	onTarget side = "target"
)

// point is one write at which a run is killed.
type point struct {
	side side
	n    int
	when stack.Moment
}

func (p point) String() string {
	return fmt.Sprintf("%s %s write %d", map[stack.Moment]string{stack.Before: "before", stack.After: "after"}[p.when], p.side, p.n)
}

// begin makes the Clusters of a trial; without names it is one, c1.
func begin(t *testing.T, clusters ...string) *trial {
	t.Helper()
	tr := &trial{namespace: fmt.Sprintf("p%04d", trials.Add(1))}
	if len(clusters) == 0 {
		clusters = []string{"c1"}
	}
	for _, name := range clusters {
		if err := stack.Cluster(name).InNamespace(tr.namespace).ControlPlane(3).Workers("md-0", 2).Synthesize(t.Context(), world.source); err != nil {
			t.Fatal(err)
		}
	}
	tr.adorn(t)
	tr.source, tr.target = stack.Must(stack.Proxy(world.source))(t), stack.Must(stack.Proxy(world.target))(t)
	t.Cleanup(func() {
		tr.source.Close()
		tr.target.Close()
		if t.Failed() {
			t.Log(strings.Join(tr.log, "\n"))
		}
	})
	tr.rebuilt(t)
	tr.before = tr.state(t, world.source)
	return tr
}

// adorn gives the objects what controllers and users put there: finalizers,
// annotations, a pause of the user's, and an object that only its label moves.
func (tr *trial) adorn(t *testing.T) {
	t.Helper()
	for _, o := range stack.Must(stack.ReadAll(t.Context(), world.source, tr.namespace))(t) {
		annotations := `"example.com/note":"of the user"`
		if o.GetKind() == "MachineDeployment" {
			annotations += `,"cluster.x-k8s.io/paused":"by its user"`
		}
		finalizers := ""
		switch o.GetKind() {
		case "Cluster", "Machine", "KubeadmControlPlane", "DevMachine", "DevCluster":
			finalizers = `,"finalizers":["example.com/keep"]`
		}
		patch := `{"metadata":{"annotations":{` + annotations + `}` + finalizers + `}}`
		if err := world.source.Client().Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	extra := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": "b"}}}
	extra.SetNamespace(tr.namespace)
	extra.SetName("moved-by-label")
	extra.SetLabels(map[string]string{"clusterctl.cluster.x-k8s.io/move": ""})
	if err := world.source.Client().Create(t.Context(), extra); err != nil {
		t.Fatal(err)
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// run runs the program through the proxies, with a deadline; -1 is a kill.
func (tr *trial) run(t *testing.T, at *point, verb string, more ...string) (code int) {
	t.Helper()
	return tr.hook(t, at, tr.args(verb, more...)...)
}

// args are those of a command on both sides.
func (tr *trial) args(verb string, more ...string) []string {
	args := slices.Concat([]string{verb, "--kubeconfig", tr.source.Kubeconfig(), "--to-kubeconfig", tr.target.Kubeconfig(), "-n", tr.namespace}, more)
	if verb != "status" {
		args = append(args, "--watch-after", "0s", "--timeout", "1m")
	}
	return args
}

// onTargetAlone are the arguments of a command that nobody told about a source.
func (tr *trial) onTargetAlone(verb string, more ...string) []string {
	return slices.Concat([]string{verb, "--to-kubeconfig", tr.target.Kubeconfig(), "-n", tr.namespace}, more)
}

func (tr *trial) command(ctx context.Context, args ...string) (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.CommandContext(ctx, world.hook, args...)
	cmd.Env = append(os.Environ(), append(stack.ClusterctlEnv(), "PATH=/nowhere")...)
	out := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	return cmd, out
}

// hook runs the program with these arguments.
func (tr *trial) hook(t *testing.T, at *point, args ...string) (code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	verb := args[0]
	cmd, out := tr.command(ctx, args...)
	if at == nil {
		_ = cmd.Run()
		tr.note(verb, cmd, out)
		return cmd.ProcessState.ExitCode()
	}
	proxy := tr.source
	if at.side == onTarget {
		proxy = tr.target
	}
	cut := proxy.CutAt(at.n, at.when)
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
	if err := proxy.Heal(); err != nil {
		t.Fatal(err)
	}
	tr.expireLeases(t)
	tr.note(fmt.Sprintf("%s, killed %s", verb, at), cmd, out)
	return cmd.ProcessState.ExitCode()
}

func (tr *trial) note(what string, cmd *exec.Cmd, out *bytes.Buffer) {
	tr.log = append(tr.log, fmt.Sprintf("--- %s: exit code %d\n%s", what, cmd.ProcessState.ExitCode(), out))
}

// said is what the last run printed.
func (tr *trial) said() string { return tr.log[len(tr.log)-1] }

// expireLeases lets the time pass that a killed holder's Lease has left.
func (tr *trial) expireLeases(t *testing.T) {
	t.Helper()
	for _, m := range []*stack.Management{world.source, world.target} {
		err := m.Client().DeleteAllOf(t.Context(), &coordinationv1.Lease{}, client.InNamespace(tr.namespace))
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
}

// neverBoth is P5.
func (tr *trial) neverBoth() error {
	if at, ok := world.both.Load(tr.namespace); ok {
		return fmt.Errorf("both copies were unpaused at %s", at)
	}
	return nil
}
