package graph_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
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

// naive is clusterctl's algorithm as it stands there: tenants by recursion over all
// nodes, then rounds until no group is left.
func naive(g *graph.Graph) []graph.ID {
	tenant := map[graph.ID]bool{}
	var below func(graph.ID)
	below = func(id graph.ID) {
		if tenant[id] {
			return
		}
		tenant[id] = true
		for o := range g.All() {
			for _, e := range g.Owners(o.ID) {
				if e.To == id && e.State == graph.Live {
					below(o.ID)
				}
			}
		}
	}
	for o := range g.All() {
		if k, _ := g.KindInfo(o.GroupKind()); k.ForceMoveHierarchy {
			below(o.ID)
		}
	}
	done := map[graph.ID]bool{}
	for grew := true; grew; {
		grew = false
		for o := range g.All() {
			_, label := o.Labels[graph.MoveLabel]
			if done[o.ID] || (!tenant[o.ID] && !label) {
				continue
			}
			ready := true
			for _, e := range g.Owners(o.ID) {
				ready = ready && e.State == graph.Live && done[e.To]
			}
			if ready {
				done[o.ID], grew = true, true
			}
		}
	}
	var out []graph.ID
	for o := range g.All() {
		if done[o.ID] {
			out = append(out, o.ID)
		}
	}
	return out
}

func TestMoveSet_AgreesWithClusterctlsAlgorithm(t *testing.T) {
	kinds := []graph.GroupKind{graph.Cluster, graph.ClusterClass, graph.MachineSet, graph.Machine, graph.Secret, graph.ConfigMap}
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 2))
		n := 2 + r.IntN(30)
		all := make([]graph.ID, n)
		for i := range n {
			all[i] = in(kinds[r.IntN(len(kinds))], fmt.Sprintf("n%d", i))
		}
		objects := make([]graph.Object, n)
		for i, id := range all {
			var owners []graph.ID
			if id.GroupKind() != graph.Cluster {
				for range r.IntN(3) {
					if o := all[r.IntN(n)]; !slices.Contains(owners, o) {
						owners = append(owners, o)
					}
				}
			}
			objects[i] = object(id.GroupKind(), id.Name, owners...)
			if len(owners) > 0 && r.IntN(12) == 0 {
				objects[i].Owners[0].UID = "stale"
			}
			if r.IntN(10) == 0 {
				objects[i].Labels = map[string]string{graph.MoveLabel: ""}
			}
		}
		var b, shuffled graph.Builder
		for _, o := range objects {
			b.Add(o)
		}
		for _, i := range r.Perm(n) {
			shuffled.Add(objects[i])
		}
		g := build(t, &b)
		if diff := cmp.Diff(naive(g), g.MoveSet().In()); diff != "" {
			t.Fatalf("seed %d:\n%s", seed, diff)
		}
		if diff := cmp.Diff(g.MoveSet(), build(t, &shuffled).MoveSet()); diff != "" {
			t.Fatalf("seed %d: the order of Add changes the result:\n%s", seed, diff)
		}
	}
}

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
	var got []string
	for o := range g.All() {
		got = append(got, o.Name)
	}
	if diff := cmp.Diff([]string{"c", "a", "b", "ms"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestSnapshot_DescribesTheStateWithoutUs(t *testing.T) {
	c := object(graph.Cluster, "c")
	c.Annotations = map[string]string{graph.RecordAnnotation: "sum", "theirs": "x"}
	held := object(graph.KubeadmControlPlane, "cp", in(graph.Cluster, "c"))
	held.Labels = map[string]string{graph.AdoptionLabel: graph.AdoptionPending, "theirs": "y"}
	held.Annotations = map[string]string{graph.PausedAnnotation: "", graph.HeldAnnotation: "us 2026-01-01T00:00:00Z"}
	paused := object(graph.MachineSet, "ms", in(graph.Cluster, "c"))
	paused.Annotations = map[string]string{graph.PausedAnnotation: ""}
	secret := object(graph.Secret, "c-ca", in(graph.KubeadmControlPlane, "cp"))
	secret.Annotations = map[string]string{graph.LastAppliedAnnotation: `{"data":{"tls.key":"c2VjcmV0"}}`}
	record := object(graph.ConfigMap, "move-hook-record-c", in(graph.Cluster, "c"))
	record.Labels = map[string]string{graph.RecordLabel: "c"}
	var b graph.Builder
	for _, o := range []graph.Object{c, held, paused, secret, record} {
		b.Add(o)
	}
	s := build(t, &b).Snapshot(in(graph.Cluster, "c"))
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	owner := func(id graph.ID) []graph.SnapshotOwner {
		return []graph.SnapshotOwner{{ID: id, APIVersion: id.Group + "/v1"}}
	}
	want := []graph.SnapshotNode{
		{ID: secret.ID, UID: "Secret-c-ca", APIVersion: "/v1", Owners: owner(held.ID), Moves: true},
		{ID: c.ID, UID: "Cluster-c", APIVersion: "cluster.x-k8s.io/v1", Annotations: map[string]string{"theirs": "x"}, Moves: true},
		{ID: paused.ID, UID: "MachineSet-ms", APIVersion: "cluster.x-k8s.io/v1", Owners: owner(c.ID), Annotations: paused.Annotations, PausedByUser: true, Moves: true},
		{ID: held.ID, UID: "KubeadmControlPlane-cp", APIVersion: "controlplane.cluster.x-k8s.io/v1", Owners: owner(c.ID), Labels: map[string]string{"theirs": "y"}, Moves: true},
	}
	if diff := cmp.Diff(want, s.Nodes); diff != "" {
		t.Error(diff)
	}
	g, err := s.Graph()
	if err != nil {
		t.Fatal(err)
	}
	if got := g.Owners(secret.ID)[0]; got.To != held.ID || got.State != graph.Live {
		t.Errorf("as a graph, the Secret's owner is %v, %v", got.To, got.State)
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
