package watch

import (
	"testing"

	"github.com/move-hook/move-hook/pkg/graph"
)

func TestStore_OneGraphServesAllUntilSomebodyNeedsAYoungerOne(t *testing.T) {
	s := newStore()
	_, _, first := s.put(object(graph.Machine, "a"))
	one, err := s.graph("fleet", first)
	if err != nil {
		t.Fatal(err)
	}
	_, _, second := s.put(object(graph.Machine, "b"))
	if again, _ := s.graph("fleet", first); again != one {
		t.Error("built again although the graph was young enough")
	}
	two, _ := s.graph("fleet", second)
	if two == one || two.Len() != 2 || one.Len() != 1 {
		t.Errorf("%d and %d objects", one.Len(), two.Len())
	}
	// The same object again is no change.
	if _, _, third := s.put(object(graph.Machine, "b")); third != second {
		t.Error("nothing changed, but the generation did")
	}
}

func TestStore_NeighboursAreSeen(t *testing.T) {
	s := newStore()
	class := graph.ID{Group: graph.CoreGroup, Kind: "ClusterClass", Namespace: "classes", Name: "quick"}
	s.put(graph.Object{ID: class, UID: "1"})
	s.put(graph.Object{ID: graph.ID{Group: "example.com", Kind: "Identity", Name: "shared"}, UID: "2"})
	s.setListed(place{kind: graph.ClusterClass, namespace: "classes"}, true)
	if g, _ := s.graph("fleet", s.generation); g.Len() != 1 || g.Listed(graph.ClusterClass, "classes") {
		t.Errorf("%d objects, before anything refers to the class", g.Len())
	}
	_, _, now := s.put(object(graph.Cluster, "c1", func(o *graph.Object) {
		o.Refs = []graph.Ref{{Field: graph.FieldClassRef, To: class}}
	}))
	if g, _ := s.graph("fleet", now); g.Len() != 3 || !g.Listed(graph.ClusterClass, "classes") {
		t.Errorf("%d objects, want the Cluster, its class and the cluster-scoped one", g.Len())
	}
	if got := s.neighboursOf("classes"); len(got) != 1 || got[0] != "fleet" {
		t.Errorf("a change of the class wakes %v", got)
	}
}

func TestStore_ReplaceForgetsWhatIsGoneInItsPlaceOnly(t *testing.T) {
	s := newStore()
	machine := place{kind: graph.Machine, namespace: "fleet"}
	elsewhere := object(graph.Machine, "a")
	elsewhere.Namespace = "other"
	for _, o := range []graph.Object{object(graph.Machine, "a"), object(graph.Machine, "b"), object(graph.Secret, "a"), elsewhere} {
		s.put(o)
	}
	changed, _ := s.replace(machine, []graph.Object{object(graph.Machine, "b")}, false)
	if len(changed) != 1 || changed[0].Name != "a" {
		t.Errorf("changed: %v", changed)
	}
	for _, o := range []graph.Object{object(graph.Machine, "b"), object(graph.Secret, "a"), elsewhere} {
		if _, ok := s.get(o.ID); !ok {
			t.Errorf("%s is gone", o.ID)
		}
	}
	if changed, _ := s.replace(machine, []graph.Object{object(graph.Machine, "b")}, true); len(changed) != 1 {
		t.Error("what was read whole was not taken over from metadata")
	}
}
