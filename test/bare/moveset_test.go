package bare_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/test/stack"
)

func TestMoveSet_EqualsClusterctls(t *testing.T) {
	admin := open(t, nil)
	makeKinds(t)
	makeGlobals(t)
	if _, err := admin.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		// make fills the namespace and says what of it stays behind, and why.
		make func(t *testing.T, c *management.Cluster, namespace string) map[string]graph.MoveReason
	}{
		{"everything", makeEverything},
		{"stand-alone", makeStandAlone},
		{"topology", makeTopology},
	} {
		t.Run(c.name, func(t *testing.T) {
			namespace := "moveset-" + c.name
			behind := c.make(t, admin, namespace)
			makeProvisioned(t, namespace)
			compare(t, admin, namespace, behind)
		})
	}
}

// compare runs the real clusterctl and demands that it and our move set agree on
// every object there is. behind names what stays, "Kind name".
func compare(t *testing.T, c *management.Cluster, namespace string, behind map[string]graph.MoveReason) {
	t.Helper()
	dir := t.TempDir()
	if _, err := world.RunClusterctl(t.Context(), "move", "--kubeconfig", world.Kubeconfig(), "--to-directory", dir, "--namespace", namespace); err != nil {
		t.Fatal(err)
	}
	files := idsIn(t, dir)
	set := read(t, c, management.Scope{Namespace: namespace}).MoveSet()
	ours := map[graph.ID]bool{}
	for _, in := range set.In() {
		ours[in] = true
	}
	if diff := cmp.Diff(files, ours); diff != "" {
		t.Errorf("-clusterctl's files +our move set:\n%s", diff)
	}
	stays := map[string]graph.MoveReason{}
	for _, object := range everyObject(t, c, namespace) {
		m, ok := set.Of(object)
		switch {
		case !ok:
			t.Errorf("%s is in no verdict", object)
		case m.In != files[object]:
			t.Errorf("%s: in a file: %t, in our move set: %t (%s)", object, files[object], m.In, m.Why())
		case !m.In:
			stays[object.Kind+" "+object.Name] = m.Reason
		}
	}
	if diff := cmp.Diff(behind, stays); diff != "" {
		t.Errorf("what stays behind and why: -want +got:\n%s", diff)
	}
}

// idsIn reads the files that clusterctl wrote.
func idsIn(t *testing.T, dir string) map[graph.ID]bool {
	t.Helper()
	out := map[graph.ID]bool{}
	for _, file := range stack.Must(os.ReadDir(dir))(t) {
		var m metav1.PartialObjectMetadata
		if err := yaml.Unmarshal(stack.Must(os.ReadFile(filepath.Join(dir, file.Name())))(t), &m); err != nil {
			t.Fatalf("%s: %v", file.Name(), err)
		}
		gk := graph.GroupKind{Group: graph.GroupOf(m.APIVersion), Kind: m.Kind}
		out[id(gk, m.Namespace, m.Name)] = true
	}
	if len(out) == 0 {
		t.Fatal("clusterctl wrote nothing")
	}
	return out
}

// everyObject lists every namespaced kind that the API server serves.
func everyObject(t *testing.T, c *management.Cluster, namespace string) []graph.ID {
	t.Helper()
	var out []graph.ID
	for _, k := range stack.Must(c.Discover(t.Context()))(t).All() {
		if !k.Namespaced {
			continue
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(schema.FromAPIVersionAndKind(k.APIVersion, k.Kind+"List"))
		if err := world.Client().List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			t.Fatalf("listing %s: %v", k.GroupKind, err)
		}
		for i := range list.Items {
			out = append(out, id(k.GroupKind, namespace, list.Items[i].Name))
		}
	}
	return out
}

// makeProvisioned writes the status that clusterctl demands before it moves.
func makeProvisioned(t *testing.T, namespace string) {
	t.Helper()
	clusters, machines := &clusterv1.ClusterList{}, &clusterv1.MachineList{}
	for _, list := range []client.ObjectList{clusters, machines} {
		if err := world.Client().List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
	}
	var objects []client.Object
	for i := range clusters.Items {
		status := &clusters.Items[i].Status
		status.Initialization.InfrastructureProvisioned = ptr.To(true)
		status.Initialization.ControlPlaneInitialized = ptr.To(true)
		status.Conditions = []metav1.Condition{{
			Type: clusterv1.ClusterControlPlaneInitializedCondition, Status: metav1.ConditionTrue,
			Reason: clusterv1.ClusterControlPlaneInitializedReason, LastTransitionTime: metav1.Time{Time: time.Unix(0, 0)},
		}}
		objects = append(objects, &clusters.Items[i])
	}
	for i := range machines.Items {
		machines.Items[i].Status.NodeRef.Name = machines.Items[i].Name
		objects = append(objects, &machines.Items[i])
	}
	for _, o := range objects {
		if err := world.Client().Status().Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}
