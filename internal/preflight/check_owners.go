package preflight

import (
	"fmt"
	"strings"

	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// checkOwners judges the owner references of what belongs to the Clusters. What stops
// clusterctl altogether is UnseenOwner's, and not said twice.
func checkOwners(s *Scope) []finding.Finding {
	var found []finding.Finding
	for _, o := range s.All() {
		found = append(found, doubled(o)...)
		if s.Moves[o.ID].Reason == graph.InCycle {
			found = append(found, finding.Finding{
				ID: "OwnerCycle", Severity: finding.Harms, Object: o.String(), Field: ownerField,
				Message: "owns itself by way of others, and clusterctl leaves it behind",
				Remedy:  "take one owner reference of the cycle off",
			})
		}
		edges := ownerEdges(s.Graph, o.ID)
		if sick := sickEdges(s, edges); len(sick) > 0 {
			if !unseen(s, o) {
				found = append(found, sickness(s, o, edges, sick)...)
			}
			continue
		}
		found = append(found, otherVersions(s, edges)...)
	}
	return found
}

const ownerField = "metadata.ownerReferences"

// ownerEdges are an object's owner references, without what clusterctl takes for owners.
func ownerEdges(g *graph.Graph, id graph.ID) []graph.Edge {
	var found []graph.Edge
	for _, e := range g.Owners(id) {
		if e.Kind == graph.Owner {
			found = append(found, e)
		}
	}
	return found
}

// sickEdges are those of the edges whose owner is not there, for all that is known.
func sickEdges(s *Scope, edges []graph.Edge) []graph.Edge {
	var sick []graph.Edge
	for _, e := range edges {
		if e.State == graph.Stale || e.State == graph.Dangling || namespacedOwner(s, e) {
			sick = append(sick, e)
		}
	}
	return sick
}

// namespacedOwner: a cluster-scoped object cannot be owned by one in a namespace; the
// garbage collector takes such an owner for absent.
func namespacedOwner(s *Scope, e graph.Edge) bool {
	kind, known := s.Graph.KindInfo(e.To.GroupKind())
	return e.From.Namespace == "" && known && kind.Namespaced
}

// sickOwners are the members that other checks than checkLeftBehind tell of, because
// what keeps them back is an owner reference that is wrong.
func sickOwners(s *Scope) map[graph.ID]bool {
	told := map[graph.ID]bool{}
	for _, o := range s.All() {
		if s.Moves[o.ID].Reason == graph.InCycle || len(sickEdges(s, ownerEdges(s.Graph, o.ID))) > 0 {
			told[o.ID] = true
		}
	}
	return told
}

func sickness(s *Scope, o *graph.Object, edges, sick []graph.Edge) []finding.Finding {
	if len(sick) == len(edges) {
		return []finding.Finding{{
			ID: "CollectorTakes", Severity: finding.Harms, Object: o.String(), Field: ownerField,
			Message: "stays behind, and the garbage collector deletes it, because none of its owners exists: " + listed(s, sick),
			Remedy:  "correct the owner references, or take them off",
		}}
	}
	var found []finding.Finding
	for _, e := range sick {
		f := finding.Finding{
			ID: "OwnerGone", Severity: finding.Harms, Object: o.String(), Field: ownerField, Have: "UID " + string(e.Owner.UID), Want: wantUID(s.Graph, e),
			Message: fmt.Sprintf("stays behind, because it names an owner that does not exist: %s", e.To),
			Remedy:  fmt.Sprintf("take the owner reference to %s off", e.To),
		}
		switch elsewhere, other := sameUID(s, e); {
		case e.State == graph.Stale:
			f.ID = "OwnerStale"
			f.Message = fmt.Sprintf("stays behind, because it names another copy of its owner %s", e.To)
			f.Remedy = fmt.Sprintf("correct the UID in its owner reference to %s", e.To)
		case other:
			f.ID, f.Want = "OwnerElsewhere", "an owner in its own namespace"
			f.Message = fmt.Sprintf("stays behind, because an owner cannot be in another namespace: %s", elsewhere)
		}
		found = append(found, f)
	}
	return found
}

// listed names owners, and where one of that UID is in another namespace.
func listed(s *Scope, edges []graph.Edge) string {
	var names []string
	for _, e := range edges {
		name := e.To.String()
		if e.State == graph.Stale {
			name += " is another copy"
		} else if elsewhere, other := sameUID(s, e); other {
			name = elsewhere.String() + " is in another namespace"
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// sameUID finds the object of an owner's kind and UID elsewhere.
func sameUID(s *Scope, e graph.Edge) (graph.ID, bool) {
	for _, o := range s.Graph.OfKind(e.To.GroupKind()) {
		if o.UID == e.Owner.UID && o.UID != "" && o.ID != e.To {
			return o.ID, true
		}
	}
	return graph.ID{}, false
}

// doubled finds an owner that is named twice, and more than one controller: the API
// server refuses the second, so only what was never written through it has one.
func doubled(o *graph.Object) []finding.Finding {
	var found []finding.Finding
	controllers := 0
	seen := map[string]bool{}
	for _, ref := range o.Owners {
		if ref.Controller != nil && *ref.Controller {
			controllers++
		}
		name := graph.GroupOf(ref.APIVersion) + "/" + ref.Kind + "/" + ref.Name
		if seen[name] {
			found = append(found, finding.Finding{
				ID: "OwnerTwice", Severity: finding.Harms, Object: o.String(), Field: ownerField,
				Message: fmt.Sprintf("names %s %s twice as its owner", ref.Kind, ref.Name),
				Remedy:  "take one of the two owner references off",
			})
		}
		seen[name] = true
	}
	if controllers > 1 {
		found = append(found, finding.Finding{
			ID: "TwoControllers", Severity: finding.Stops, Object: o.String(), Field: ownerField, Have: fmt.Sprint(controllers) + " controllers", Want: "1",
			Message: "has more than one controller, which no API server accepts",
			Remedy:  "leave the one that manages it",
		})
	}
	return found
}

// otherVersions finds references that are not written as upstream's controllers on this
// server write them.
func otherVersions(s *Scope, edges []graph.Edge) []finding.Finding {
	var found []finding.Finding
	for _, e := range edges {
		kind, known := s.Graph.KindInfo(e.To.GroupKind())
		if !known || kind.APIVersion == e.Owner.APIVersion {
			continue
		}
		found = append(found, finding.Finding{
			ID: "OwnerVersion", Severity: finding.Notes, Object: e.From.String(), Field: ownerField, Have: e.Owner.APIVersion, Want: kind.APIVersion,
			Message: fmt.Sprintf("names its owner %s in a version that the server does not prefer", e.To),
		})
	}
	return found
}
