package graph_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/move-hook/move-hook/pkg/graph"
)

func TestBelongs_WithoutAnyOwnerReference(t *testing.T) {
	label := func(o graph.Object, refs ...graph.Ref) graph.Object {
		o.Labels = map[string]string{graph.ClusterNameLabel: "c"}
		o.Refs = refs
		return o
	}
	infra := graph.GroupKind{Group: "infra", Kind: "InfraMachine"}
	class := graph.Ref{Field: graph.FieldClassRef, To: in(graph.ClusterClass, "class")}
	var b graph.Builder
	b.Add(label(object(graph.Cluster, "c"), class))
	b.Add(object(graph.Cluster, "d"))
	other := object(graph.Cluster, "e")
	other.Refs = []graph.Ref{class}
	b.Add(other)
	b.Add(object(graph.ClusterClass, "class"))
	b.Add(label(object(graph.Machine, "m"), graph.Ref{Field: graph.FieldInfrastructureRef, To: in(infra, "m")}, graph.Ref{Field: graph.FieldDataSecret, To: in(graph.Secret, "m")}))
	b.Add(object(infra, "m"))
	b.Add(object(graph.ConfigMap, "claim", in(infra, "m")))
	b.Add(object(graph.Secret, "m"))
	b.Add(object(graph.Secret, "c-ca"))
	b.Add(object(graph.Secret, "d-ca"))
	b.Add(object(graph.Machine, "of-d", in(graph.Cluster, "d")))
	g := build(t, &b)
	var got []string
	for _, id := range g.Belongs(in(graph.Cluster, "c")) {
		got = append(got, id.String())
	}
	want := []string{"ConfigMap ns/claim", "Secret ns/c-ca", "Secret ns/m", "Cluster ns/c", "ClusterClass ns/class", "Machine ns/m", "InfraMachine ns/m"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestHierarchy_FollowsIdentityAndSurvivesCycles(t *testing.T) {
	var b graph.Builder
	b.Add(object(graph.Cluster, "c"))
	stale := object(graph.MachineSet, "ms", in(graph.Cluster, "c"))
	stale.Owners[0].UID = "old"
	b.Add(stale)
	b.Add(object(graph.Machine, "a", in(graph.MachineSet, "ms"), in(graph.Machine, "b")))
	b.Add(object(graph.Machine, "b", in(graph.Machine, "a")))
	b.Add(object(graph.Machine, "stranger"))
	g := build(t, &b).Hierarchy(in(graph.Cluster, "c"))
	if diff := cmp.Diff([]string{"c", "a", "b", "ms"}, names(g)); diff != "" {
		t.Error(diff)
	}
}

func TestHierarchy_ShowsItsObjectsAsTheWholeGraphDoes(t *testing.T) {
	b := new(graph.Builder)
	class := object(graph.ClusterClass, "class")
	c := object(graph.Cluster, "c")
	c.Refs = []graph.Ref{{Field: graph.FieldClassRef, To: class.ID}, {Field: graph.FieldInfrastructureRef, To: in(widget, "gone")}}
	torn := object(graph.Machine, "torn", c.ID, in(widget, "w"))
	orphan := object(graph.Machine, "orphan", c.ID, in(graph.MachineSet, "gone"))
	for _, o := range []graph.Object{class, c, torn, orphan, object(widget, "w"), object(graph.Cluster, "other")} {
		b.Add(o)
	}
	b.Listed(widget, "")
	whole := build(t, b)
	part := whole.Hierarchy(c.ID)
	if part.Len() != 3 {
		t.Fatalf("%d objects, want the Cluster and two Machines", part.Len())
	}
	for o := range part.All() {
		if diff := cmp.Diff(whole.Owners(o.ID), part.Owners(o.ID)); diff != "" {
			t.Errorf("owners of %s:\n%s", o.ID, diff)
		}
		if diff := cmp.Diff(whole.SpecRefs(o.ID), part.SpecRefs(o.ID)); diff != "" {
			t.Errorf("references of %s:\n%s", o.ID, diff)
		}
		want, _ := whole.MoveSet().Of(o.ID)
		if got, ok := part.MoveSet().Of(o.ID); !ok || got != want {
			t.Errorf("%s: %+v, want %+v", o.ID, got, want)
		}
	}
	if got := part.Owners(torn.ID)[1].State; got != graph.Live {
		t.Errorf("an owner outside the Hierarchy is %v, want live", got)
	}
	if diff := cmp.Diff([]graph.ID{in(graph.MachineSet, "gone")}, part.Unseen()); diff != "" {
		t.Errorf("Unseen:\n%s", diff)
	}
	if len(part.Referrers(in(widget, "gone"))) != 1 {
		t.Error("the reference to what is missing is gone from the Hierarchy")
	}
	if _, ok := part.MoveSet().Of(class.ID); ok {
		t.Error("the Hierarchy judges an object that is not in it")
	}
	if diff := cmp.Diff(names(part.Hierarchy(torn.ID)), []string{"torn"}); diff != "" {
		t.Errorf("Hierarchy of a Hierarchy:\n%s", diff)
	}
	if whole.Hierarchy(in(graph.Cluster, "nobody")).Len() != 0 {
		t.Error("nothing is below what nobody names")
	}
}

func TestHierarchyAndBelongs_OfAClusterThatHasNotArrived(t *testing.T) {
	var b graph.Builder
	owned := object(graph.Machine, "owned", in(graph.Cluster, "c"))
	says := object(graph.MachineSet, "says")
	says.Refs = []graph.Ref{{Field: graph.FieldClusterName, To: in(graph.Cluster, "c")}}
	labelled := object(graph.Machine, "labelled")
	labelled.Labels = map[string]string{graph.ClusterNameLabel: "c"}
	for _, o := range []graph.Object{owned, says, labelled, object(graph.Secret, "data", owned.ID), object(graph.Machine, "stranger")} {
		b.Add(o)
	}
	g := build(t, &b)
	if diff := cmp.Diff([]string{"data", "owned"}, names(g.Hierarchy(in(graph.Cluster, "c")))); diff != "" {
		t.Errorf("Hierarchy:\n%s", diff)
	}
	want := []graph.ID{in(graph.Secret, "data"), labelled.ID, owned.ID, says.ID}
	if diff := cmp.Diff(want, g.Belongs(in(graph.Cluster, "c"))); diff != "" {
		t.Errorf("Belongs:\n%s", diff)
	}
	if diff := cmp.Diff([]*graph.Object{mustFind(t, g, labelled.ID)}, g.Labelled(in(graph.Cluster, "c"))); diff != "" {
		t.Errorf("Labelled:\n%s", diff)
	}
}

// What several Clusters share belongs to each of them; through it they do not belong to each other.
func TestBelongs_SharedObjectsDoNotJoinClusters(t *testing.T) {
	var b graph.Builder
	class := object(graph.ClusterClass, "class")
	set := object(graph.ClusterResourceSet, "addons")
	set.Refs = []graph.Ref{{Field: "spec.resources[0]", To: in(graph.ConfigMap, "payload")}}
	b.Add(class)
	b.Add(object(widget, "class-template", class.ID)) // Owned by the class and named by nothing.
	b.Add(set)
	b.Add(object(graph.ConfigMap, "payload", set.ID))
	shared := object(widget, "template")
	shared.ID.Namespace = ""
	b.Add(shared)
	for _, name := range []string{"c", "d"} {
		c := object(graph.Cluster, name)
		c.Refs = []graph.Ref{{Field: graph.FieldClassRef, To: class.ID}}
		machine := object(graph.Machine, name+"-m", c.ID, in(widget, "foreign"))
		machine.Refs = []graph.Ref{{Field: "spec.poolRef", To: shared.ID}}
		binding := object(graph.ClusterResourceSetBinding, name) // Without owner, as after a restore.
		binding.Refs = []graph.Ref{
			{Field: "spec.bindings[0].clusterResourceSetName", To: set.ID},
			{Field: graph.FieldClusterName, To: c.ID},
		}
		for _, o := range []graph.Object{c, machine, binding} {
			b.Add(o)
		}
	}
	b.Add(object(widget, "foreign"))
	g := build(t, &b)
	var got []string
	for _, id := range g.Belongs(in(graph.Cluster, "c")) {
		got = append(got, id.String())
	}
	want := []string{
		"ConfigMap ns/payload", "ClusterResourceSet ns/addons", "ClusterResourceSetBinding ns/c",
		"Cluster ns/c", "ClusterClass ns/class", "Machine ns/c-m", "Widget template", "Widget ns/foreign",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func names(g *graph.Graph) []string {
	var out []string
	for o := range g.All() {
		out = append(out, o.Name)
	}
	return out
}

func mustFind(t *testing.T, g *graph.Graph, id graph.ID) *graph.Object {
	t.Helper()
	o, ok := g.Object(id)
	if !ok {
		t.Fatalf("%s is not in the graph", id)
	}
	return o
}
