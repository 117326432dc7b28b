package graph_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/move-hook/move-hook/pkg/graph"
)

func TestParseHeldOwners(t *testing.T) {
	yes, no := true, false
	for text, want := range map[string][]metav1.OwnerReference{
		`[{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"MachineSet","name":"ms","controller":true,"blockOwnerDeletion":false}]`: {
			{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "MachineSet", Name: "ms", Controller: &yes, BlockOwnerDeletion: &no},
		},
		// The same twice, in two versions: once, and it manages.
		`[{"apiVersion":"a/v1","kind":"K","name":"n"},{"apiVersion":"a/v2","kind":"K","name":"n","controller":true}]`: {
			{APIVersion: "a/v1", Kind: "K", Name: "n", Controller: &yes},
		},
		`[{"apiVersion":"v1","kind":"K","name":"n","later":"field"},{"apiVersion":"a/v1","kind":"K","name":"n"}]`: {
			{APIVersion: "v1", Kind: "K", Name: "n"}, {APIVersion: "a/v1", Kind: "K", Name: "n"},
		},
	} {
		got, err := graph.ParseHeldOwners(text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", text, err, diff)
		}
	}
	for text, want := range map[string]string{
		"":                          "no JSON list",
		"{}":                        "no JSON list",
		`[{"apiVersion":1}]`:        "no JSON list",
		"[] x":                      "no JSON list",
		"null":                      "names no owner",
		"[]":                        "names no owner",
		`[{"kind":"K","name":"n"}]`: "[0] has no apiVersion",
		`[{"apiVersion":"v1","kind":"K","name":"n"},null]`: "[1] has no apiVersion",
		`[{"apiVersion":"a/b/c","kind":"K","name":"n"}]`:   "no group and version",
	} {
		if refs, err := graph.ParseHeldOwners(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, %v; want an error with %q", text, refs, err, want)
		}
	}
}

// heldBy is an object whose owners an armed target took off.
func heldBy(o graph.Object, owners string) graph.Object {
	o.Annotations = map[string]string{graph.OwnersAnnotation: owners}
	return o
}

// TestHeldOwners_TellWhatBelongsTogetherAndMoveNothing: without any owner reference
// and label, an armed target's objects belong to their Cluster; clusterctl knows
// nothing of it.
func TestHeldOwners_TellWhatBelongsTogetherAndMoveNothing(t *testing.T) {
	const cluster = `[{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","name":"c"}]`
	const machine = `[{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","name":"m","controller":true}]`
	var b graph.Builder
	for _, gk := range []graph.GroupKind{graph.Cluster, graph.Machine, graph.ConfigMap} {
		b.Kind(graph.KindInfo{GroupKind: gk, Namespaced: true, Discovered: true, ForceMove: graph.ForceMoves(gk), ForceMoveHierarchy: graph.ForceMoves(gk)})
		b.Listed(gk, "")
	}
	b.Add(object(graph.Cluster, "c"))
	b.Add(heldBy(object(graph.Machine, "m"), cluster))
	b.Add(heldBy(object(widget, "w"), machine))
	b.Add(heldBy(object(graph.ConfigMap, "claim", in(graph.Machine, "m")), machine))
	b.Add(heldBy(object(graph.ConfigMap, "broken"), "broken"))
	b.Add(heldBy(object(graph.ConfigMap, "waiting"), strings.ReplaceAll(machine, `"m"`, `"later"`)))
	g := build(t, &b)
	checkInvariants(t, g)

	if diff := cmp.Diff([]string{"claim", "c", "m", "w"}, names(g.Hierarchy(in(graph.Cluster, "c")))); diff != "" {
		t.Errorf("hierarchy:\n%s", diff)
	}
	var belongs []string
	for _, id := range g.Belongs(in(graph.Cluster, "c")) {
		belongs = append(belongs, id.Name)
	}
	if diff := cmp.Diff([]string{"claim", "c", "m", "w"}, belongs); diff != "" {
		t.Errorf("belongs:\n%s", diff)
	}
	if diff := cmp.Diff([]graph.ID{in(graph.Cluster, "c")}, g.MoveSet().In()); diff != "" {
		t.Errorf("move set:\n%s", diff)
	}
	if owners := g.Owners(in(graph.ConfigMap, "claim")); len(owners) != 1 || owners[0].Kind != graph.Owner {
		t.Errorf("an owner that is there again is no held one as well: %v", owners)
	}
	if _, managed := g.Controller(in(widget, "w")); managed {
		t.Error("what was taken off controls nothing")
	}
	if owners := g.Owners(in(graph.ConfigMap, "waiting")); len(owners) != 1 || owners[0].State != graph.Dangling || owners[0].Kind.String() != "held" {
		t.Errorf("the owner that has not arrived: %v", owners)
	}
	s := g.Snapshot(in(graph.Cluster, "c"))
	for _, n := range s.Nodes {
		if n.Name != "claim" && len(n.Owners) > 0 || n.Annotations[graph.OwnersAnnotation] != "" {
			t.Errorf("%s is recorded with our mark or with owners it has not: %+v", n.ID, n)
		}
	}
}
