package interrupt_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/move-hook/move-hook/test/interrupt"
)

// beginSeveral is a namespace with two Clusters and a ClusterClass that none of them
// uses: clusterctl moves it because of its kind, and no record has it.
func beginSeveral(t *testing.T) *trial {
	t.Helper()
	tr := begin(t, "c1", "c2")
	class := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"infrastructure": map[string]any{"templateRef": map[string]any{"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevClusterTemplate", "name": "none"}},
		"controlPlane":   map[string]any{"templateRef": map[string]any{"apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlaneTemplate", "name": "none"}},
	}}}
	class.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("ClusterClass"))
	class.SetNamespace(tr.Namespace)
	class.SetName("class")
	if err := world.source.Client().Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	tr.before = tr.state(t, world.source)
	return tr
}

// TestP4_SeveralClustersInANamespace: what is killed while some of them have arrived
// and others have not is completed, or taken back, for all.
func TestP4_SeveralClustersInANamespace(t *testing.T) {
	var whole writes
	t.Run("uninterrupted", func(t *testing.T) { whole = measure(t, beginSeveral(t)) })
	if whole.source == 0 {
		t.Fatal("an uninterrupted move failed")
	}
	points := []interrupt.Point{whole.creating, whole.deleting}
	if soak() { // spread over the whole run
		for _, p := range whole.points(t, 0) {
			if p.N%12 == 0 {
				points = append(points, p)
			}
		}
	}
	var rows []interrupt.Row
	for name, judge := range map[string]func(*trial, *testing.T, writes) string{"resume": (*trial).resumed, "rollback": (*trial).rolledBack} {
		t.Run(name, func(t *testing.T) {
			rows = append(rows, interrupt.Each(t, points, func(t *testing.T, i int) interrupt.Row {
				tr := beginSeveral(t)
				tr.run(t, &points[i], "move")
				return interrupt.Row{Point: fmt.Sprintf("%s of move, then %s", points[i], name), Result: judge(tr, t, whole)}
			})...)
		})
	}
	interrupt.Table(t, rows)
}

// TestDryRun_ResumeAndRollbackWriteNothing: they say what they would do, from every
// half of a move.
func TestDryRun_ResumeAndRollbackWriteNothing(t *testing.T) {
	whole := uninterrupted(t)
	for _, at := range []interrupt.Point{whole.creating, whole.deleting} {
		for _, verb := range []string{"resume", "rollback"} {
			t.Run(fmt.Sprintf("%s, %s of move", verb, at), func(t *testing.T) {
				t.Parallel()
				tr := begin(t)
				tr.run(t, &at, "move")
				source, target := tr.state(t, world.source), tr.state(t, world.target)
				tr.Source.Forget()
				tr.Target.Forget()
				if code := tr.run(t, nil, verb, "--dry-run"); code != 0 {
					t.Errorf("%s --dry-run ends with exit code %d", verb, code)
				}
				for _, r := range append(tr.Source.Mutating(), tr.Target.Mutating()...) {
					t.Errorf("%s --dry-run wrote: %s", verb, r)
				}
				if err := interrupt.Same("the source changed", source, tr.state(t, world.source)); err != nil {
					t.Error(err)
				}
				if err := interrupt.Same("the target changed", target, tr.state(t, world.target)); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
