package preflight

import (
	"fmt"
	"maps"
	"slices"

	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// drainRules tell how Nodes of a namespace's Machines are drained. Nothing owns or names them.
var drainRules = graph.GroupKind{Group: graph.CoreGroup, Kind: "MachineDrainRule"}

// checkLeftBehind finds what belongs to a Cluster, or is referred to by its
// specs, and what `clusterctl move` will not take along. clusterctl says nothing
// about these and calls the move a success.
func checkLeftBehind(s *Scope) []finding.Finding {
	var found []finding.Finding
	told := sickOwners(s)
	hinted := s.hinted()
	candidates := s.All()
	for _, id := range slices.SortedFunc(maps.Keys(hinted), graph.ID.Compare) {
		if o, ok := s.Graph.Object(id); ok && !s.belongs(id) {
			candidates = append(candidates, o)
		}
	}
	for _, o := range candidates {
		verdict := s.Moves[o.ID]
		if verdict.In || told[o.ID] {
			continue
		}
		f := finding.Finding{
			ID: "LeftBehind", Severity: finding.Harms, Object: o.String(),
			Message: "stays behind: " + verdict.Why(),
			Remedy:  takeAlong(o.ID, verdict),
		}
		if from, ok := referrer(s, o.ID); ok {
			f.Message += fmt.Sprintf("; %s refers to it in %s", from.From, from.Field)
		} else if from, ok := hinted[o.ID]; ok {
			f.Message += fmt.Sprintf("; %s refers to it in %s", from.From, from.Field)
		}
		found = append(found, f)
	}
	return slices.Concat(found, drainRulesLeft(s), unseenReferences(s))
}

// hinted is followHints, once.
func (s *Scope) hinted() map[graph.ID]graph.Edge {
	if s.hints == nil {
		s.hints = followHints(s)
	}
	return s.hints
}

// followHints gives what the members seem to refer to, and what that refers to, if it
// is there: with who says so first.
func followHints(s *Scope) map[graph.ID]graph.Edge {
	found := map[graph.ID]graph.Edge{}
	queue := s.All()
	secrets := secretsByName(s.Graph)
	for n := 0; n < len(queue); n++ {
		o := queue[n]
		refs := o.Hints
		if _, beyond := found[o.ID]; beyond {
			refs = slices.Concat(o.Refs, o.Hints)
		}
		for _, r := range refs {
			to, ok := s.Graph.Object(r.To)
			if !ok && r.To.GroupKind() == graph.Secret && r.To.Namespace == "" && len(secrets[r.To.Name]) == 1 {
				// A cluster-scoped identity names a Secret beside its provider.
				to, ok = secrets[r.To.Name][0], true
			}
			if _, again := found[r.To]; !ok || again || to.ID == o.ID {
				continue
			}
			if _, again := found[to.ID]; again {
				continue
			}
			found[to.ID] = graph.Edge{From: o.ID, To: to.ID, Kind: graph.Spec, Field: r.Field}
			queue = append(queue, to)
		}
	}
	return found
}

func secretsByName(g *graph.Graph) map[string][]*graph.Object {
	found := map[string][]*graph.Object{}
	for _, o := range g.OfKind(graph.Secret) {
		found[o.Name] = append(found[o.Name], o)
	}
	return found
}

// drainRulesLeft finds the rules of the Clusters' namespaces: their kind is not
// labelled for move, so each has to be.
func drainRulesLeft(s *Scope) []finding.Finding {
	namespaces := map[string]bool{}
	for _, c := range s.Clusters {
		namespaces[c.Namespace] = true
	}
	var found []finding.Finding
	for _, o := range s.Graph.OfKind(drainRules) {
		verdict := s.Moves[o.ID]
		if verdict.In || !namespaces[o.Namespace] || s.belongs(o.ID) {
			continue
		}
		found = append(found, finding.Finding{
			ID: "LeftBehind", Severity: finding.Harms, Object: o.String(),
			Message: "stays behind: " + verdict.Why() + "; it tells how the Machines of its namespace are drained",
			Remedy:  takeAlong(o.ID, verdict),
		})
	}
	return found
}

// referrer is the first object that moves and refers to this one.
func referrer(s *Scope, id graph.ID) (graph.Edge, bool) {
	for _, e := range s.Graph.Referrers(id) {
		if s.Moves[e.From].In {
			return e, true
		}
	}
	return graph.Edge{}, false
}

// unseenReferences are references to what nobody has read: of a kind that
// clusterctl does not discover it is left behind, of a listed kind it does not exist.
func unseenReferences(s *Scope) []finding.Finding {
	var found []finding.Finding
	for _, o := range s.All() {
		if !s.Moves[o.ID].In {
			continue
		}
		for _, e := range s.Graph.SpecRefs(o.ID) {
			f := finding.Finding{ID: "LeftBehind", Severity: finding.Harms, Object: e.To.String()}
			switch info, known := s.Graph.KindInfo(e.To.GroupKind()); {
			case e.State == graph.Live:
				continue
			case e.State == graph.Dangling:
				f.ID, f.Severity = "DanglingReference", finding.Notes
				f.Message = fmt.Sprintf("does not exist, but %s refers to it in %s", o.ID, e.Field)
			case known && info.Discovered:
				f.Message = fmt.Sprintf("cannot be read, so nobody knows whether it moves; %s refers to it in %s", o.ID, e.Field)
				f.Remedy = "allow move-hook to list " + e.To.GroupKind().String()
			default:
				f.Message = fmt.Sprintf("stays behind: %s; %s refers to it in %s", graph.NotDiscovered, o.ID, e.Field)
				f.Remedy = takeAlong(e.To, graph.Membership{Reason: graph.NotDiscovered})
			}
			found = append(found, f)
		}
	}
	return found
}

// takeAlong is what makes clusterctl take an object along.
func takeAlong(id graph.ID, verdict graph.Membership) string {
	label := "kubectl label " + resource(id) + " " + graph.MoveLabel + "="
	switch verdict.Reason {
	case graph.NotDiscovered:
		return "label its CustomResourceDefinition: kubectl label crd PLURAL." + id.Group + " " + graph.ClusterctlLabel + "= " + graph.MoveLabel + "="
	case graph.OwnerOutside, graph.OwnerUnseen:
		return fmt.Sprintf("make %s move too, or take the owner reference to it off", verdict.Because)
	case graph.OwnerStale:
		return fmt.Sprintf("correct the UID in its owner reference to %s", verdict.Because)
	case graph.InCycle:
		return "take one owner reference of the cycle off"
	case graph.OutOfScope:
		return "create it on the target by hand: clusterctl moves one namespace, and this is in another"
	case graph.NoRoot, graph.InHierarchy, graph.LabelledMove, graph.KindMoves, graph.Recorded:
		return label
	}
	return label
}

// resource names an object for kubectl: "-n fleet secret/c1-ca".
func resource(id graph.ID) string {
	if id.Namespace == "" {
		return flow.Resource(id)
	}
	return "-n " + id.Namespace + " " + flow.Resource(id)
}
