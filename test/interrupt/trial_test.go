package interrupt_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/test/interrupt"
	"github.com/move-hook/move-hook/test/stack"
)

// trials numbers the namespaces.
var trials atomic.Int64

// trial is one pivot of a 3+2 cluster in a namespace of its own.
type trial struct {
	*interrupt.Trial
	// before is the source as it was before anything was done to it.
	before interrupt.State
}

// begin makes the Clusters of a trial; without names it is one, c1.
func begin(t *testing.T, clusters ...string) *trial {
	t.Helper()
	namespace := fmt.Sprintf("p%04d", trials.Add(1))
	if len(clusters) == 0 {
		clusters = []string{"c1"}
	}
	for _, name := range clusters {
		if err := stack.Cluster(name).InNamespace(namespace).ControlPlane(3).Workers("md-0", 2).Synthesize(t.Context(), world.source); err != nil {
			t.Fatal(err)
		}
	}
	tr := &trial{Trial: interrupt.Begin(t, world.hook, world.source, world.target, namespace)}
	tr.adorn(t)
	tr.rebuilt(t)
	tr.before = tr.state(t, world.source)
	return tr
}

func (tr *trial) state(t *testing.T, m *stack.Management) interrupt.State {
	t.Helper()
	return stack.Must(interrupt.StateOf(t.Context(), m, tr.Namespace))(t)
}

// adorn gives the objects what controllers and users put there: finalizers,
// annotations, a pause of the user's, and an object that only its label moves.
func (tr *trial) adorn(t *testing.T) {
	t.Helper()
	for _, o := range stack.Must(stack.ReadAll(t.Context(), world.source, tr.Namespace))(t) {
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
	extra.SetNamespace(tr.Namespace)
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

// run runs a command on both sides.
func (tr *trial) run(t *testing.T, at *interrupt.Point, verb string, more ...string) (code int) {
	t.Helper()
	return tr.Run(t, at, tr.args(verb, more...)...)
}

// args are those of a command on both sides that does not look on when it is done.
func (tr *trial) args(verb string, more ...string) []string {
	if verb != "status" {
		more = append(more, "--watch-after", "0s", "--timeout", "1m")
	}
	return tr.Args(verb, more...)
}

// onTargetAlone are the arguments of a command that nobody told about a source.
func (tr *trial) onTargetAlone(verb string, more ...string) []string {
	return slices.Concat([]string{verb, "--to-kubeconfig", tr.Target.Kubeconfig(), "-n", tr.Namespace}, more)
}

// neverBoth is P5.
func (tr *trial) neverBoth() error {
	if at, ok := world.both.Load(tr.Namespace); ok {
		return fmt.Errorf("both copies were unpaused at %s", at)
	}
	return nil
}
