package stack_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/test/stack"
)

// TestStopManagers places a Cluster while no controller runs, and sees that
// nothing happens to it until they do.
func TestStopManagers(t *testing.T) {
	_, target := stack.ForTest(t)
	if err := target.StopManagers(t.Context()); err != nil {
		t.Fatal(err)
	}
	key := stack.Must(stack.Cluster("placed").InNamespace("placed").ControlPlane(1).Create(t.Context(), target))(t)
	if err := target.StartManagers(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := stack.WaitReady(t.Context(), target, key); err != nil {
		t.Fatal(err)
	}
}

// TestMove is the whole way of a workload cluster with everything that can
// belong to one.
func TestMove(t *testing.T) {
	t.Parallel()
	source, target := stack.ForTest(t)
	key := stack.Must(stack.Cluster("c1").InNamespace("fleet").ControlPlane(3).Workers("md-0", 2).
		HealthCheck().UserCertificates().ResourceSet("crs").Movable("extra").Create(t.Context(), source))(t)
	start := time.Now()
	if err := stack.WaitReady(t.Context(), source, key); err != nil {
		t.Fatal(err)
	}
	t.Logf("ready after %s", time.Since(start).Round(time.Second))

	before := stack.Must(stack.OwnerGraph(t.Context(), source, "fleet"))(t)
	there := stack.Must(stack.Watch(t.Context(), source))(t)
	defer there.Stop()
	here := stack.Must(stack.Watch(t.Context(), target))(t)
	defer here.Stop()

	start = time.Now()
	out, err := stack.Move(t.Context(), source, target, "fleet")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "Clusters=1") {
		t.Errorf("clusterctl moved something else:\n%s", out)
	}
	t.Logf("moved after %s", time.Since(start).Round(time.Second))
	if err := stack.WaitReady(t.Context(), target, key); err != nil {
		t.Fatal(err)
	}
	t.Logf("ready again after %s", time.Since(start).Round(time.Second))

	// clusterctl says "mover" of itself nowhere; its writes carry its binary's name.
	for _, event := range here.Events(stack.Machines, stack.MachineSets) {
		if event.Key.Namespace == "fleet" && (event.Type != stack.Created || !slices.Contains(event.Managers, "clusterctl")) {
			t.Errorf("not clusterctl's doing: %s", event)
		}
	}
	if both := stack.BothUnpaused(there, here, 100*time.Millisecond); len(both) > 0 {
		t.Errorf("reconciled on both sides: %v", both)
	}
	after := stack.Must(stack.OwnerGraph(t.Context(), target, "fleet"))(t)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("owners before and after (-before +after):\n%s", diff)
	}
	left := stack.Must(stack.ReadAll(t.Context(), source, "fleet"))(t)
	if len(left) > 0 {
		t.Errorf("%d objects stayed behind: %v", len(left), left)
	}
}

// TestReady has a cluster of each kind become ready.
func TestReady(t *testing.T) {
	for name, builder := range map[string]*stack.ClusterBuilder{
		"overlapping selectors":           stack.Cluster("c2").InNamespace("ready").ControlPlane(1).Workers("md-0", 1).Workers("md-1", 2).OverlappingSelectors(),
		"class in another namespace":      stack.Cluster("c3").InNamespace("ready").OfClass("classes", "quick").ControlPlane(1).Workers("md-0", 1),
		"stand-alone control plane":       stack.Cluster("c4").InNamespace("ready").StandAloneControlPlane(3),
		"another version, given by users": stack.Cluster("c5").InNamespace("ready").ControlPlane(1).Version("v1.35.0"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source, _ := stack.ForTest(t)
			if strings.HasPrefix(name, "class") {
				if err := source.Create(t.Context(), stack.Class("classes", "quick")...); err != nil {
					t.Fatal(err)
				}
			}
			start := time.Now()
			key := stack.Must(builder.Create(t.Context(), source))(t)
			if err := stack.WaitReady(t.Context(), source, key); err != nil {
				t.Fatal(err)
			}
			t.Logf("ready after %s", time.Since(start).Round(time.Second))
			machines := &clusterv1.MachineList{}
			if err := source.Client().List(t.Context(), machines, client.InNamespace(key.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: key.Name}); err != nil {
				t.Fatal(err)
			}
			if got := len(machines.Items); got != builder.WantedMachines() {
				t.Errorf("%d Machines, want %d", got, builder.WantedMachines())
			}
		})
	}
}
