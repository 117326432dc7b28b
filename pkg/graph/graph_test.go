package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/move-hook/move-hook/pkg/graph"
)

var widget = graph.GroupKind{Group: "example.com", Kind: "Widget"}

func in(gk graph.GroupKind, name string) graph.ID {
	return graph.ID{Group: gk.Group, Kind: gk.Kind, Namespace: "ns", Name: name}
}

// object makes an object with the UID "<kind>-<name>" and owners given by their IDs.
func object(gk graph.GroupKind, name string, owners ...graph.ID) graph.Object {
	o := graph.Object{ID: in(gk, name), UID: types.UID(gk.Kind + "-" + name), APIVersion: gk.Group + "/v1"}
	for _, w := range owners {
		o.Owners = append(o.Owners, metav1.OwnerReference{APIVersion: w.Group + "/v1", Kind: w.Kind, Name: w.Name, UID: types.UID(w.Kind + "-" + w.Name)})
	}
	return o
}

func build(t *testing.T, b *graph.Builder) *graph.Graph {
	t.Helper()
	for _, gk := range []graph.GroupKind{graph.Cluster, graph.ClusterClass, graph.Machine, graph.MachineSet, graph.Secret, graph.ConfigMap, graph.KubeadmControlPlane, graph.ClusterResourceSet, graph.ClusterResourceSetBinding} {
		b.Kind(graph.KindInfo{GroupKind: gk, APIVersion: gk.Group + "/v1", Namespaced: true, Discovered: true, ForceMove: graph.ForceMoves(gk), ForceMoveHierarchy: graph.ForceMoves(gk)})
		b.Listed(gk, "ns")
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestEdges_StateSaysWhatIsKnown(t *testing.T) {
	var b graph.Builder
	b.Add(object(graph.Cluster, "c"))
	stale := object(graph.Machine, "stale", in(graph.Cluster, "c"))
	stale.Owners[0].UID = "of-the-source"
	empty := object(graph.Machine, "empty-uid", in(graph.Cluster, "c"))
	empty.Owners[0].UID = ""
	for _, o := range []graph.Object{
		object(graph.Machine, "live", in(graph.Cluster, "c")), stale, empty,
		object(graph.Machine, "dangling", in(graph.MachineSet, "gone")),
		object(graph.Machine, "unknown", in(widget, "w")),
	} {
		b.Add(o)
	}
	g := build(t, &b)
	for name, want := range map[string]graph.RefState{
		"live": graph.Live, "stale": graph.Stale, "empty-uid": graph.Stale, "dangling": graph.Dangling, "unknown": graph.Unknown,
	} {
		if got := g.Owners(in(graph.Machine, name))[0].State; got != want {
			t.Errorf("%s: owner is %v, want %v", name, got, want)
		}
	}
	if diff := cmp.Diff([]graph.ID{in(graph.MachineSet, "gone"), in(widget, "w")}, g.Unseen()); diff != "" {
		t.Errorf("Unseen:\n%s", diff)
	}
	if !g.Referenced(in(widget, "w")) || g.Referenced(in(widget, "other")) {
		t.Error("Referenced should be true for what was named and false otherwise")
	}
}

func TestBuild_TwoCopiesOfOneIdentityAreAnError(t *testing.T) {
	var b graph.Builder
	o := object(graph.Cluster, "c")
	b.Add(o)
	o.UID = "another"
	b.Add(o)
	if _, err := b.Build(); err == nil || !strings.Contains(err.Error(), "Cluster ns/c") {
		t.Errorf("want an error that names Cluster ns/c, got %v", err)
	}
}

func TestSoftOwners_AreClusterctls(t *testing.T) {
	var b graph.Builder
	b.Add(object(graph.Cluster, "c"))
	b.Add(object(graph.Secret, "c-ca"))
	b.Add(object(graph.Secret, "c-apiserver-etcd-client"))
	b.Add(object(graph.Secret, "c-etcd", in(graph.KubeadmControlPlane, "gone"))) // has an owner, though dangling
	b.Add(object(graph.Secret, "c-other"))
	b.Add(object(graph.Secret, "d-ca"))
	binding := object(graph.ClusterResourceSetBinding, "c")
	binding.Refs = []graph.Ref{{Field: graph.FieldClusterName, To: in(graph.Cluster, "c")}}
	b.Add(binding)
	g := build(t, &b)
	var got []string
	for _, e := range g.Dependents(in(graph.Cluster, "c")) {
		if e.Kind == graph.Soft {
			got = append(got, e.From.String())
		}
	}
	want := []string{"Secret ns/c-apiserver-etcd-client", "Secret ns/c-ca", "ClusterResourceSetBinding ns/c"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMoveSet_GivesTheReasonForEveryObject(t *testing.T) {
	var b graph.Builder
	b.Add(object(graph.Cluster, "c"))
	b.Add(object(graph.MachineSet, "ms", in(graph.Cluster, "c")))
	b.Add(object(graph.Machine, "m", in(graph.MachineSet, "ms")))
	// Field report: a second owner whose kind clusterctl does not list; the Machine is dropped silently.
	b.Add(object(graph.Machine, "torn", in(graph.MachineSet, "ms"), in(widget, "w")))
	b.Add(object(graph.Secret, "torn-data", in(graph.Machine, "torn")))
	b.Add(object(widget, "w"))
	stale := object(graph.Machine, "stale", in(graph.MachineSet, "ms"))
	stale.Owners[0].UID = "old"
	b.Add(stale)
	b.Add(object(graph.Machine, "dangling", in(graph.MachineSet, "ms"), in(graph.MachineSet, "gone")))
	b.Add(object(graph.Secret, "alone"))
	labelled := object(graph.ConfigMap, "labelled")
	labelled.Labels = map[string]string{graph.MoveLabel: ""}
	b.Add(labelled)
	b.Add(object(graph.Machine, "ring-1", in(graph.Machine, "ring-2"), in(graph.Cluster, "c")))
	b.Add(object(graph.Machine, "ring-2", in(graph.Machine, "ring-1")))
	b.Add(object(graph.ClusterClass, "class"))
	b.Kind(graph.KindInfo{GroupKind: widget, APIVersion: "example.com/v1", Namespaced: true})
	g := build(t, &b)
	got := map[string]string{}
	set := g.MoveSet()
	for _, m := range set {
		got[m.ID.String()] = fmt.Sprintf("%v: %s", m.In, m.Why())
	}
	want := map[string]string{
		"Cluster ns/c":          "true: in the hierarchy of Cluster ns/c",
		"MachineSet ns/ms":      "true: in the hierarchy of Cluster ns/c",
		"Machine ns/m":          "true: in the hierarchy of Cluster ns/c",
		"Machine ns/torn":       "false: an owner stays behind: Widget ns/w",
		"Secret ns/torn-data":   "false: an owner stays behind: Machine ns/torn",
		"Widget ns/w":           "false: clusterctl does not discover its kind",
		"Machine ns/stale":      "false: an owner reference has a stale UID: MachineSet ns/ms",
		"Machine ns/dangling":   "false: an owner is not among the objects that clusterctl sees: MachineSet ns/gone",
		"Secret ns/alone":       "false: no owner leads to a moved root",
		"ConfigMap ns/labelled": "true: labelled for move",
		"Machine ns/ring-1":     "false: owners form a cycle",
		"Machine ns/ring-2":     "false: owners form a cycle",
		"ClusterClass ns/class": "true: in the hierarchy of ClusterClass ns/class",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(set) != g.Len() {
		t.Errorf("%d verdicts for %d objects", len(set), g.Len())
	}
}

func ExampleBuilder() {
	var b graph.Builder
	b.Add(object(graph.Cluster, "c1"))
	b.Add(object(graph.Machine, "m-0", in(graph.MachineSet, "ms")))
	b.Listed(graph.MachineSet, "ns")
	g, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range g.Owners(in(graph.Machine, "m-0")) {
		fmt.Println(e.From, "->", e.To, e.State)
	}
	// Output: Machine ns/m-0 -> MachineSet ns/ms dangling
}
