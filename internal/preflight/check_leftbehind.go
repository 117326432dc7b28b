package preflight

import (
	"fmt"

	"github.com/move-hook/move-hook/internal/pivot/flow"
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// checkLeftBehind finds what belongs to a Cluster, or is referred to by its
// specs, and what `clusterctl move` will not take along. clusterctl says nothing
// about these and calls the move a success.
func checkLeftBehind(s *Scope) []finding.Finding {
	var found []finding.Finding
	for _, o := range s.All() {
		verdict := s.Moves[o.ID]
		if verdict.In {
			continue
		}
		f := finding.Finding{
			ID: "LeftBehind", Severity: finding.Harms, Object: o.String(),
			Message: "stays behind: " + verdict.Why(),
			Remedy:  takeAlong(o.ID, verdict),
		}
		if from, ok := referrer(s, o.ID); ok {
			f.Message += fmt.Sprintf("; %s refers to it in %s", from.From, from.Field)
		}
		found = append(found, f)
	}
	return append(found, unseenReferences(s)...)
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
	case graph.NoRoot, graph.InHierarchy, graph.LabelledMove, graph.KindMoves, graph.OutOfScope, graph.Recorded:
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
