package bare_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/move-hook/move-hook/internal/management"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/test/scenario"
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
			if err := stack.Provisioned(t.Context(), world, namespace); err != nil {
				t.Fatal(err)
			}
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
	files := map[graph.ID]bool{}
	for _, id := range stack.Must(scenario.FolderIDs(dir))(t) {
		files[id] = true
	}
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
