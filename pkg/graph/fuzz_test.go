package graph_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/move-hook/move-hook/pkg/graph"
)

func FuzzExtract(f *testing.F) {
	f.Add(`{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","metadata":{"name":"m","ownerReferences":[{"kind":"A","name":"b"}]},"spec":{"replicas":1e300,"bootstrap":{"dataSecretName":7}}}`)
	f.Add(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","labels":[]}}`)
	f.Add(`{"apiVersion":"addons.cluster.x-k8s.io/v1beta2","kind":"ClusterResourceSet","metadata":{"name":"s"},"spec":{"resources":[null,{"kind":"Secret"}]}}`)
	f.Add(strings.Repeat(`{"spec":`, 200) + `1` + strings.Repeat(`}`, 200))
	f.Fuzz(func(t *testing.T, text string) {
		var m map[string]any
		if json.Unmarshal([]byte(text), &m) != nil {
			return
		}
		o, err := graph.Extract(m)
		if err != nil {
			return
		}
		var b graph.Builder
		b.Add(o)
		g, err := b.Build()
		if err != nil {
			t.Fatalf("what Extract took, Build refuses: %v", err)
		}
		if g.MoveSet()[0].ID != o.ID {
			t.Fatal("the object fell out of the move set")
		}
	})
}

func FuzzSnapshot(f *testing.F) {
	w := newWorld(3)
	for _, name := range []string{"c0", "nobody"} {
		var b graph.Builder
		for _, u := range w.objects {
			o, err := graph.Extract(u.Object)
			if err != nil {
				f.Fatal(err)
			}
			b.Add(o)
		}
		g, err := b.Build()
		if err != nil {
			f.Fatal(err)
		}
		text, err := json.Marshal(g.Snapshot(graph.ID{Group: graph.CoreGroup, Kind: "Cluster", Namespace: "fleet", Name: name}))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add(`{"cluster":{"group":"cluster.x-k8s.io","kind":"Cluster","name":"c"},"nodes":[{"group":"cluster.x-k8s.io","kind":"Cluster","name":"c","owners":[{"kind":"Cluster","name":"c"}]}]}`)
	f.Add(`{"nodes":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		var s graph.Snapshot
		if json.Unmarshal([]byte(text), &s) != nil {
			return
		}
		g, err := s.Graph()
		if err != nil {
			return
		}
		set := g.MoveSet()
		if len(set) != len(s.Nodes) || g.Len() != len(s.Nodes) {
			t.Fatalf("%d nodes, %d objects, %d verdicts", len(s.Nodes), g.Len(), len(set))
		}
		for _, m := range set {
			if n, ok := s.Node(m.ID); !ok || n.Moves != m.In {
				t.Fatalf("%s: the verdict is not the recorded one", m.ID)
			}
		}
	})
}

func FuzzParseHeldOwners(f *testing.F) {
	for _, text := range []string{
		`[{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","name":"c","controller":true},{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Cluster","name":"c"}]`,
		`[{"apiVersion":"v1","kind":"Secret","name":"s","blockOwnerDeletion":false,"uid":"u"}]`,
		`null`, `[]`, `{}`, `[null]`, `[{"apiVersion":"a/b/c","kind":"K","name":"n"}]`, `[{"apiVersion":7}]`, `[] []`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		refs, err := graph.ParseHeldOwners(text)
		if (err == nil) != (len(refs) > 0) {
			t.Fatalf("%d owners and error %v", len(refs), err)
		}
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, r := range refs {
			id := graph.GroupOf(r.APIVersion) + "/" + r.Kind + "/" + r.Name
			if r.UID != "" || r.Kind == "" || r.Name == "" || seen[id] {
				t.Errorf("owner %+v", r)
			}
			seen[id] = true
		}
		again, err := json.Marshal(refs)
		if err != nil {
			t.Fatal(err)
		}
		same, err := graph.ParseHeldOwners(string(again))
		if diff := cmp.Diff(refs, same); diff != "" || err != nil {
			t.Errorf("%v, read again (-first +second):\n%s", err, diff)
		}
		// An object that carries it is found from its owners, and moves as if it did not.
		var with, without graph.Builder
		for _, b := range []*graph.Builder{&with, &without} {
			o := object(graph.Machine, "m", in(graph.Cluster, "c"))
			if b == &with {
				o.Annotations = map[string]string{graph.OwnersAnnotation: text}
			}
			b.Add(object(graph.Cluster, "c"))
			b.Add(o)
		}
		g := build(t, &with)
		checkInvariants(t, g)
		if diff := cmp.Diff(build(t, &without).MoveSet(), g.MoveSet()); diff != "" {
			t.Errorf("the move set (-without +with):\n%s", diff)
		}
	})
}

// FuzzBuild reads a text of lines "kind name owner owner ...", where a name is a
// letter or two and an owner may be stale (~) or anything.
func FuzzBuild(f *testing.F) {
	f.Add("Cluster c\nMachineSet ms c\nMachine m ms\nSecret c-ca\nSecret m ~m", uint64(1))
	f.Add("Machine a b\nMachine b a\nCluster c a\nMachine x x", uint64(2))
	f.Add("Widget w\nMachine m w nobody\nMachine m ~w", uint64(3))
	f.Add("", uint64(0))
	kinds := map[string]graph.GroupKind{
		"Cluster": graph.Cluster, "ClusterClass": graph.ClusterClass, "MachineSet": graph.MachineSet,
		"Machine": graph.Machine, "Secret": graph.Secret, "Widget": widget,
	}
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		var objects []graph.Object
		of := map[string]graph.ID{}
		for line := range strings.Lines(text) {
			words := strings.Fields(line)
			if len(words) < 2 || len(objects) > 200 {
				continue
			}
			gk, ok := kinds[words[0]]
			if !ok {
				gk = graph.GroupKind{Group: "fuzz", Kind: words[0]}
			}
			o := object(gk, words[1])
			of[words[1]] = o.ID
			for _, owner := range words[2:] {
				name, stale := strings.CutPrefix(owner, "~")
				id, ok := of[name]
				if !ok {
					id = in(graph.Machine, name)
				}
				ref := metav1.OwnerReference{APIVersion: id.Group + "/v1", Kind: id.Kind, Name: id.Name, UID: object(id.GroupKind(), id.Name).UID}
				if stale {
					ref.UID = "stale"
				}
				o.Owners = append(o.Owners, ref)
				o.Refs = append(o.Refs, graph.Ref{Field: "spec.x", To: id})
			}
			objects = append(objects, o)
		}
		var b graph.Builder
		for _, o := range objects {
			b.Add(o)
		}
		g := build(t, &b)
		checkInvariants(t, g)
		// Of the same identity the later counts, so only the order of the last ones may change.
		var shuffled graph.Builder
		last := map[graph.ID]graph.Object{}
		for _, o := range objects {
			last[o.ID] = o
		}
		ids := make([]graph.ID, 0, len(last))
		for o := range g.All() {
			ids = append(ids, o.ID)
		}
		for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(len(ids)) {
			shuffled.Add(last[ids[i]])
		}
		if diff := cmp.Diff(g.MoveSet(), build(t, &shuffled).MoveSet()); diff != "" {
			t.Errorf("the order of Add changes the move set:\n%s", diff)
		}
	})
}

// checkInvariants checks what holds for every graph.
func checkInvariants(t *testing.T, g *graph.Graph) {
	t.Helper()
	forward, backward := map[string]int{}, map[string]int{}
	for o := range g.All() {
		for _, e := range append(append([]graph.Edge{}, g.Owners(o.ID)...), g.SpecRefs(o.ID)...) {
			forward[fmt.Sprint(e)]++
			if _, seen := g.Object(e.To); seen != (e.State == graph.Live || e.State == graph.Stale) {
				t.Errorf("%s -> %s is %v", e.From, e.To, e.State)
			}
			if !g.Referenced(e.To) {
				t.Errorf("%s is named by %s and not referenced", e.To, e.From)
			}
		}
	}
	count := func(id graph.ID) {
		for _, e := range append(append([]graph.Edge{}, g.Dependents(id)...), g.Referrers(id)...) {
			backward[fmt.Sprint(e)]++
		}
	}
	unseen := map[graph.ID]bool{}
	for o := range g.All() {
		count(o.ID)
		for _, e := range append(append([]graph.Edge{}, g.Owners(o.ID)...), g.SpecRefs(o.ID)...) {
			if _, seen := g.Object(e.To); !seen && !unseen[e.To] {
				unseen[e.To] = true
				count(e.To)
			}
		}
	}
	if diff := cmp.Diff(forward, backward); diff != "" {
		t.Errorf("edges forward and backward differ:\n%s", diff)
	}
	set := g.MoveSet()
	if len(set) != g.Len() {
		t.Errorf("%d verdicts about %d objects: something fell out", len(set), g.Len())
	}
	for i, m := range set {
		if m.Reason == "" {
			t.Errorf("%s has no reason", m.ID)
		}
		if i > 0 && set[i-1].ID.Compare(m.ID) >= 0 {
			t.Errorf("%s is out of order", m.ID)
		}
		if !m.In {
			continue
		}
		for _, e := range g.Owners(m.ID) {
			if e.Kind == graph.Held {
				continue
			}
			if owner, _ := set.Of(e.To); !owner.In {
				t.Errorf("%s moves without its owner %s", m.ID, e.To)
			}
		}
	}
	if diff := cmp.Diff(set, g.MoveSet()); diff != "" {
		t.Errorf("the second computation differs:\n%s", diff)
	}
	for _, c := range g.OfKind(graph.Cluster) {
		if h := g.Hierarchy(c.ID); len(h.MoveSet()) != h.Len() {
			t.Errorf("%d verdicts about %d objects of a Hierarchy", len(h.MoveSet()), h.Len())
		}
	}
}
