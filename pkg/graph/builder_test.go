package graph_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/move-hook/move-hook/pkg/graph"
)

func TestBuild_ReplacesByIdentity(t *testing.T) {
	var b graph.Builder
	o := object(graph.Machine, "m")
	b.Add(o)
	o.Labels = map[string]string{"later": ""}
	b.Add(o)
	o.UID = "" // Read from where there are no UIDs: not another copy.
	b.Add(o)
	g := build(t, &b)
	if got := mustFind(t, g, o.ID); g.Len() != 1 || got.UID != "" || len(got.Labels) != 1 {
		t.Errorf("%d objects, %+v", g.Len(), got)
	}
}

func TestBuild_RefusesWhatHasNoIdentity(t *testing.T) {
	for _, id := range []graph.ID{{}, {Kind: "Machine"}, {Name: "m"}} {
		var b graph.Builder
		b.Add(graph.Object{ID: id})
		if _, err := b.Build(); err == nil {
			t.Errorf("%+v was accepted", id)
		}
	}
}

// A Builder goes on after Build, and the graph that it made does not.
func TestBuild_GraphDoesNotChangeAnyMore(t *testing.T) {
	var b graph.Builder
	b.Add(object(graph.Machine, "m", in(graph.MachineSet, "ms")))
	g := build(t, &b)
	b.Add(object(graph.MachineSet, "ms"))
	b.Listed(widget, "")
	b.Kind(graph.KindInfo{GroupKind: widget})
	if g.Len() != 1 || g.Owners(in(graph.Machine, "m"))[0].State != graph.Dangling || g.Listed(widget, "ns") {
		t.Error("the graph changed after it was built")
	}
	if _, known := g.KindInfo(widget); known {
		t.Error("the graph learned a kind after it was built")
	}
}

// The scope of what a reference names is known from discovery, or from what was seen.
func TestReferences_AreResolvedByTheScopeOfTheirKind(t *testing.T) {
	claim := graph.GroupKind{Group: "ipam", Kind: "Claim"}
	for _, tc := range []struct {
		name string
		// info is what discovery says of the kind; nil if nothing.
		info *graph.KindInfo
		// seen are the namespaces in which an object of the name was seen.
		seen  []string
		want  string // the namespace of the identity that is named
		state graph.RefState
	}{
		{"namespaced", &graph.KindInfo{Namespaced: true}, []string{"", "ns"}, "ns", graph.Live},
		{"namespaced, not there", &graph.KindInfo{Namespaced: true}, []string{""}, "ns", graph.Unknown},
		{"cluster-scoped", &graph.KindInfo{}, []string{""}, "", graph.Live},
		{"cluster-scoped, not there", &graph.KindInfo{}, nil, "", graph.Unknown},
		{"unknown kind, seen beside it", nil, []string{"ns", ""}, "ns", graph.Live},
		{"unknown kind, seen without namespace", nil, []string{""}, "", graph.Live},
		{"unknown kind, not seen", nil, nil, "ns", graph.Unknown},
	} {
		var b graph.Builder
		if tc.info != nil {
			tc.info.GroupKind = widget
			b.Kind(*tc.info)
		}
		for _, namespace := range tc.seen {
			o := object(widget, "w")
			o.Namespace = namespace
			b.Add(o)
		}
		c := object(claim, "c", in(widget, "w"))
		c.Refs = []graph.Ref{{Field: "spec.poolRef", To: in(widget, "w")}}
		b.Add(c)
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		for what, e := range map[string]graph.Edge{"owner": g.Owners(c.ID)[0], "reference": g.SpecRefs(c.ID)[0]} {
			if e.To.Namespace != tc.want || e.State != tc.state {
				t.Errorf("%s: the %s is %q, %v; want namespace %q, %v", tc.name, what, e.To, e.State, tc.want, tc.state)
			}
		}
		if got := g.OwnerID("ns", c.Owners[0]); got.Namespace != tc.want {
			t.Errorf("%s: OwnerID is %q, want namespace %q", tc.name, got, tc.want)
		}
	}
}

// Only a completed list is a licence to say that something is not there.
func TestListed_IsTheOnlyLicenceToSayDangling(t *testing.T) {
	for _, tc := range []struct {
		name   string
		listed []string
		want   graph.RefState
	}{
		{"nothing", nil, graph.Unknown},
		{"another namespace", []string{"elsewhere"}, graph.Unknown},
		{"its namespace", []string{"ns"}, graph.Dangling},
		{"all namespaces", []string{""}, graph.Dangling},
	} {
		var b graph.Builder
		for _, namespace := range tc.listed {
			b.Listed(widget, namespace)
		}
		o := object(graph.Machine, "m", in(widget, "w"))
		o.Refs = []graph.Ref{{Field: "spec.ref", To: in(widget, "w")}}
		b.Add(o)
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Owners(o.ID)[0].State; got != tc.want {
			t.Errorf("%s listed: the owner is %v, want %v", tc.name, got, tc.want)
		}
		if got := g.SpecRefs(o.ID)[0].State; got != tc.want {
			t.Errorf("%s listed: the reference is %v, want %v", tc.name, got, tc.want)
		}
	}
}

// UIDs decide between live and stale only where both sides have one.
func TestUIDs_DecideBetweenLiveAndStale(t *testing.T) {
	for _, tc := range []struct {
		owner, ref types.UID
		want       graph.RefState
	}{
		{"a", "a", graph.Live},
		{"a", "b", graph.Stale},
		{"a", "", graph.Stale},
		{"", "b", graph.Live},
		{"", "", graph.Live},
	} {
		c, m := object(graph.Cluster, "c"), object(graph.Machine, "m", in(graph.Cluster, "c"))
		c.UID, m.Owners[0].UID = tc.owner, tc.ref
		var b graph.Builder
		b.Add(c)
		b.Add(m)
		if got := build(t, &b).Owners(m.ID)[0].State; got != tc.want {
			t.Errorf("owner's UID %q, reference's UID %q: %v, want %v", tc.owner, tc.ref, got, tc.want)
		}
	}
}

func TestController_IsTheManagingOwner(t *testing.T) {
	yes, no := true, false
	m := object(graph.Machine, "m", in(graph.Cluster, "c"), in(widget, "w"), in(graph.MachineSet, "ms"))
	m.Owners[1].Controller, m.Owners[2].Controller = &no, &yes
	var b graph.Builder
	b.Add(m)
	b.Add(object(graph.Machine, "alone", in(graph.Cluster, "c")))
	g := build(t, &b)
	if e, ok := g.Controller(m.ID); !ok || e.To != in(graph.MachineSet, "ms") {
		t.Errorf("controller is %v, %v", e.To, ok)
	}
	for _, name := range []string{"alone", "not-there"} {
		if e, ok := g.Controller(in(graph.Machine, name)); ok {
			t.Errorf("%s has the controller %v", name, e.To)
		}
	}
}

func TestGraph_AnswersAboutWhatWasNotSeen(t *testing.T) {
	m := object(graph.Machine, "m", in(graph.MachineSet, "gone"))
	m.Refs = []graph.Ref{{Field: graph.FieldDataSecret, To: in(graph.Secret, "missing")}}
	var b graph.Builder
	b.Add(m)
	g := build(t, &b)
	if e := g.Dependents(in(graph.MachineSet, "gone")); len(e) != 1 || e[0].From != m.ID {
		t.Errorf("dependents of an unseen owner are %v", e)
	}
	if e := g.Referrers(in(graph.Secret, "missing")); len(e) != 1 || e[0].From != m.ID || e[0].Field != graph.FieldDataSecret {
		t.Errorf("referrers of an unseen object are %v", e)
	}
	for id, want := range map[graph.ID]bool{
		in(graph.MachineSet, "gone"): true, in(graph.Secret, "missing"): true, m.ID: false, in(widget, "w"): false,
	} {
		if got := g.Referenced(id); got != want {
			t.Errorf("%s is referenced: %v, want %v", id, got, want)
		}
	}
	if diff := cmp.Diff([]graph.ID{in(graph.MachineSet, "gone")}, g.Unseen()); diff != "" {
		t.Errorf("Unseen has owners only:\n%s", diff)
	}
	nobody := in(graph.Machine, "nobody")
	if g.Owners(nobody) != nil || g.SpecRefs(nobody) != nil || g.Dependents(nobody) != nil || g.Referrers(nobody) != nil {
		t.Error("an object that nobody named has edges")
	}
}

func TestGraph_IsSortedAndIndexed(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	w := newWorld(5)
	g := w.graph(t, "", r.Perm(len(w.objects)))
	var before graph.ID
	perKind := map[graph.GroupKind]int{}
	for o := range g.All() {
		if before.Compare(o.ID) >= 0 {
			t.Errorf("%s comes after %s", o.ID, before)
		}
		before = o.ID
		if found := mustFind(t, g, o.ID); found != o {
			t.Errorf("%s is found as %s", o.ID, found.ID)
		}
		if of := g.OfKind(o.GroupKind()); of[perKind[o.GroupKind()]] != o {
			t.Errorf("%s is not in its place among its kind", o.ID)
		}
		perKind[o.GroupKind()]++
	}
	var kinds []graph.GroupKind
	for _, k := range g.Kinds() {
		kinds = append(kinds, k.GroupKind)
	}
	if len(kinds) != len(worldKinds) {
		t.Errorf("%d kinds, want %d", len(kinds), len(worldKinds))
	}
	for i := 1; i < len(kinds); i++ {
		if kinds[i-1].Compare(kinds[i]) >= 0 {
			t.Errorf("%s comes after %s", kinds[i], kinds[i-1])
		}
	}
}

// Run with -race: readers need no locks.
func TestGraph_HasNoLocksAndNeedsNone(t *testing.T) {
	w := newWorld(1)
	g := w.graph(t, "", w.Perm(len(w.objects)))
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for _, c := range g.OfKind(graph.Cluster) {
				g.MoveSet()
				g.Belongs(c.ID)
				g.Hierarchy(c.ID).MoveSet()
				g.Snapshot(c.ID)
			}
		})
	}
	readers.Wait()
}

func TestNames_AreWhatPeopleRead(t *testing.T) {
	for got, want := range map[string]string{
		in(graph.Machine, "m").String():                                    "Machine ns/m",
		graph.ID{Group: "g", Kind: "Identity", Name: "i"}.String():         "Identity i",
		graph.Machine.String():                                             "Machine.cluster.x-k8s.io",
		graph.Secret.String():                                              "Secret",
		graph.GroupOf("v1"):                                                "",
		graph.GroupOf("cluster.x-k8s.io/v1beta2"):                          "cluster.x-k8s.io",
		fmt.Sprint(graph.Live, graph.Stale, graph.Dangling, graph.Unknown): "live stale dangling unknown",
		fmt.Sprint(graph.Owner, graph.Soft, graph.Spec):                    "owner soft spec",
		graph.Membership{Reason: graph.NoRoot}.Why():                       string(graph.NoRoot),
		graph.Membership{Reason: graph.InHierarchy, In: true, Because: in(graph.Cluster, "c")}.Why(): "in the hierarchy of Cluster ns/c",
		graph.Membership{Reason: graph.OwnerOutside, Because: in(widget, "w")}.Why():                 "an owner stays behind: Widget ns/w",
	} {
		if got != want {
			t.Errorf("%q should be %q", got, want)
		}
	}
	if !(graph.ID{}).IsZero() || in(graph.Machine, "m").IsZero() {
		t.Error("only the zero ID names nothing")
	}
}
