package stack_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/test/stack"
)

// TestFull is everything that needs controllers. The workload clusters are
// begun together, because most of their time is spent waiting.
func TestFull(t *testing.T) {
	source, target := stack.ForTest(t)
	if err := source.Create(t.Context(), stack.Class("classes", "quick")...); err != nil {
		t.Fatal(err)
	}
	moving := stack.Cluster("c1").InNamespace("fleet").ControlPlane(3).Workers("md-0", 2).
		HealthCheck().UserCertificates().ResourceSet("crs").Movable("extra")
	others := map[string]*stack.ClusterBuilder{
		"overlapping selectors":      stack.Cluster("c2").InNamespace("ready").ControlPlane(1).Workers("md-0", 1).Workers("md-1", 2).OverlappingSelectors(),
		"class in another namespace": stack.Cluster("c3").InNamespace("ready").OfClass("classes", "quick").ControlPlane(1).Workers("md-0", 1),
		"stand-alone control plane":  stack.Cluster("c4").InNamespace("ready").StandAloneControlPlane(3).Version("v1.35.0"),
	}
	var created errgroup.Group
	for _, builder := range append([]*stack.ClusterBuilder{moving}, values(others)...) {
		created.Go(func() error {
			_, err := builder.Create(t.Context(), source)
			return err
		})
	}

	t.Run("objects can be placed while managers are stopped", func(t *testing.T) { placed(t, target) })
	if err := created.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Run("move", func(t *testing.T) { moves(t, source, target, moving) })
	for name, builder := range others {
		t.Run(name, func(t *testing.T) { becomesReady(t, source, builder) })
	}
}

func values[K comparable, V any](m map[K]V) []V {
	var list []V
	for _, v := range m {
		list = append(list, v)
	}
	return list
}

func becomesReady(t *testing.T, m *stack.Management, builder *stack.ClusterBuilder) {
	t.Helper()
	start := time.Now()
	key := builder.Key()
	if err := stack.WaitReady(t.Context(), m, key); err != nil {
		t.Fatal(err)
	}
	t.Logf("ready after %s", time.Since(start).Round(time.Second))
	machines := &clusterv1.MachineList{}
	err := m.Client().List(t.Context(), machines, client.InNamespace(key.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: key.Name})
	if err != nil {
		t.Fatal(err)
	}
	if got := len(machines.Items); got != builder.WantedMachines() {
		t.Errorf("%d Machines, want %d", got, builder.WantedMachines())
	}
}

func placed(t *testing.T, m *stack.Management) {
	if err := m.StopManagers(t.Context()); err != nil {
		t.Fatal(err)
	}
	builder := stack.Cluster("placed").InNamespace("placed").ControlPlane(1)
	stack.Must(builder.Create(t.Context(), m))(t)
	missing := stack.Must(stack.Unready(t.Context(), m, builder.Key()))(t)
	if !slices.Contains(missing, "no Machine yet") {
		t.Errorf("something works on it: %v", missing)
	}
	if err := m.StartManagers(t.Context()); err != nil {
		t.Fatal(err)
	}
	becomesReady(t, m, builder)
}

// moves is the whole way of a workload cluster with everything that can belong to one.
func moves(t *testing.T, source, target *stack.Management, builder *stack.ClusterBuilder) {
	ctx, namespace := t.Context(), builder.Key().Namespace
	becomesReady(t, source, builder)
	before := stack.Must(stack.OwnerGraph(ctx, source, namespace))(t)
	there := stack.Must(stack.Watch(ctx, source))(t)
	defer there.Stop()
	here := stack.Must(stack.Watch(ctx, target))(t)
	defer here.Stop()

	start := time.Now()
	out, err := stack.Move(ctx, source, target, namespace)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "Clusters=1") {
		t.Errorf("clusterctl moved something else:\n%s", out)
	}
	t.Logf("moved after %s", time.Since(start).Round(time.Second))
	becomesReady(t, target, builder)

	for _, event := range here.Events(stack.Machines, stack.MachineSets) {
		if event.Key.Namespace == namespace && (event.Type != stack.Created || !slices.Contains(event.Managers, "clusterctl")) {
			t.Errorf("not clusterctl's doing: %s", event)
		}
	}
	if both := stack.BothUnpaused(there, here, 100*time.Millisecond); len(both) > 0 {
		t.Errorf("reconciled on both sides: %v", both)
	}
	after := stack.Must(stack.OwnerGraph(ctx, target, namespace))(t)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("owners before and after (-before +after):\n%s", diff)
	}
	left := stack.Must(stack.ReadAll(ctx, source, namespace))(t)
	for _, object := range left {
		t.Errorf("stayed behind: %s %s", object.GetKind(), object.GetName())
	}
}
