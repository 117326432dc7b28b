package adopt

import (
	"reflect"
	"slices"
	"testing"

	"github.com/move-hook/move-hook/pkg/graph"
)

// invariants are what holds for every plan, whatever the state.
func invariants(t *testing.T, w *memory) {
	t.Helper()
	s := w.state()
	p := Decide(s)
	if again := Decide(w.clone().state()); again.String() != p.String() {
		t.Errorf("two decisions about the same state:\n%s\n%s", p, again)
	}
	switch p.Phase {
	case Deferred, Blocked, Adopted, AwaitingStatus:
		if p.Writes() > 0 {
			t.Errorf("P1: a plan that is %s has steps:\n%s", p.Phase, p)
		}
	case Adopting, Releasing:
		if p.Writes() == 0 {
			t.Errorf("a plan that is %s has no steps", p.Phase)
		}
	case Watching:
		if p.Writes() == 0 && p.Again.IsZero() {
			t.Errorf("nobody will wake a plan that is watching:\n%s", p)
		}
	}
	if (len(p.Refusals) > 0) != (p.Phase == Blocked) {
		t.Errorf("%s with %d refusals", p.Phase, len(p.Refusals))
	}
	if p.Phase == Deferred && len(p.Waiting) == 0 {
		t.Error("deferred, and nobody says for what")
	}
	for step := range p.Steps() {
		seen := map[graph.ID]bool{}
		for _, a := range step {
			if seen[a.Target().ID] {
				t.Errorf("%s twice in a step", a.Target().ID)
			}
			seen[a.Target().ID] = true
			if o, ok := a.(SetOwners); ok {
				checkOwners(t, s, o)
			}
		}
	}
	for _, f := range slices.Concat(p.Refusals, p.Notes) {
		if !slices.ContainsFunc(IDs(), func(e Entry) bool { return e.ID == f.ID }) {
			t.Errorf("finding %s is not documented", f.ID)
		}
	}
}

// checkOwners is the second computation of property (g), and of P6: what goes is
// only what the rules let go.
func checkOwners(t *testing.T, s State, a SetOwners) {
	t.Helper()
	if err := valid(a.After); err != nil {
		t.Errorf("%s: %v", a, err)
	}
	seen := map[string]bool{}
	kept := map[graph.ID]bool{}
	for _, r := range a.After {
		id := s.Graph.OwnerID(a.On.Namespace, r)
		if seen[string(r.UID)] || kept[id] {
			t.Errorf("%s: an owner twice", a)
		}
		seen[string(r.UID)], kept[id] = true, true
		if o, ok := s.Graph.Object(id); ok && o.UID != r.UID {
			t.Errorf("%s: %s has not the live UID", a, id)
		}
	}
	for _, r := range a.Before {
		id := s.Graph.OwnerID(a.On.Namespace, r)
		race := a.On.GroupKind() == graph.Machine && id == s.Cluster
		handedOver := a.On.GroupKind() == graph.Secret && (id.GroupKind() == graph.KubeadmConfig || id == s.Cluster)
		if !kept[id] && !race && !handedOver && !s.Policy.PruneDangling {
			t.Errorf("P6: %s: the owner %s is gone", a, id)
		}
	}
	if reflect.DeepEqual(a.Before, a.After) {
		t.Errorf("%s changes nothing", a)
	}
}
