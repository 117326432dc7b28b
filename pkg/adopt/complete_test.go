package adopt

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/move-hook/move-hook/pkg/graph"
)

// TestComplete_InferredNeverSaysYesBeforeTheRecord is the oracle of 2.3: take any
// one object away that the rules can know of; both must wait.
func TestComplete_InferredNeverSaysYesBeforeTheRecord(t *testing.T) {
	s := sample{name: "c1", controlPlane: 3, workers: []workers{{name: "md-1", replicas: 2}}}
	complete := func(w *memory, recorded bool) bool {
		state := w.state()
		if recorded {
			state.Record.Snapshot = snapshotOf(w.cluster, s.objects())
		}
		return len(newView(&state).incomplete()) == 0
	}
	w := newMemory()
	for _, o := range s.objects() {
		w.create(arrival{owners: "none", status: true}.carried(o))
	}
	if !complete(w, true) || !complete(w, false) {
		t.Fatal("the whole cluster is not complete")
	}
	// Nothing names these: a MachineDeployment that has not arrived, and what goes with it as a whole.
	unknowable := []string{"MachineDeployment/md-1", "Secret/c1-kubeconfig"}
	for _, id := range w.ids() {
		less := w.clone()
		less.remove(id)
		if complete(less, true) {
			t.Errorf("with a record, %s is not missed", id)
		}
		known := !slices.Contains(unknowable, id.Kind+"/"+id.Name)
		if got := complete(less, false); got == known {
			t.Errorf("by the rules, without %s complete is %v", id, got)
		}
	}
}

// TestDecide_TouchesNothing: a State is read, never changed, and so are its parts.
func TestDecide_TouchesNothing(t *testing.T) {
	voyages(t, 10, func(t *testing.T, v *voyage) {
		w := v.target()
		for _, o := range v.objects {
			w.create(v.land(v.rand, o))
		}
		w.tick(time.Minute)
		w.partial = []Missing{{Object: w.cluster, What: "z"}, {Object: w.cluster, What: "a"}}
		s := w.state()
		before := fmt.Sprint(s.Record.Partial, slices.Collect(objectsOf(s.Graph)))
		Decide(s)
		s.Record.Partial = slices.Clone(w.partial)
		if after := fmt.Sprint(s.Record.Partial, slices.Collect(objectsOf(s.Graph))); after != before {
			t.Errorf("the state was changed:\n%s\n%s", before, after)
		}
	})
}

func objectsOf(g *graph.Graph) func(func(string) bool) {
	return func(yield func(string) bool) {
		for o := range g.All() {
			keys := slices.Sorted(maps.Keys(o.Annotations))
			if !yield(fmt.Sprint(o.ID, o.Owners, keys, o.Labels)) {
				return
			}
		}
	}
}
