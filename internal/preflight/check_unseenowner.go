package preflight

import (
	"fmt"

	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// checkUnseenOwner finds owner references that stop `clusterctl move` altogether:
// it reads the Clusters, ClusterClasses and Machines that they name as if it had
// seen them (objectgraph.go getClusters, getClusterClasses, getMachines), and fails
// after many tries. Any object that clusterctl sees will do, whosever it is.
func checkUnseenOwner(s *Scope) []finding.Finding {
	var found []finding.Finding
	for o := range s.Graph.All() {
		for _, e := range unseenOwners(s, o) {
			found = append(found, finding.Finding{
				ID: "UnseenOwner", Severity: finding.Stops, Object: o.String(),
				Field: ownerField, Have: "UID " + string(e.Owner.UID), Want: wantUID(s.Graph, e),
				Message: fmt.Sprintf("names %s as its owner, which clusterctl fails to read and then moves nothing", e.To),
				Remedy:  "correct the UID in the owner reference, or take the reference off, then run the command again",
			})
		}
	}
	return found
}

func unseen(s *Scope, o *graph.Object) bool { return len(unseenOwners(s, o)) > 0 }

func unseenOwners(s *Scope, o *graph.Object) []graph.Edge {
	if reason := s.Moves[o.ID].Reason; reason == graph.NotDiscovered || reason == graph.OutOfScope {
		return nil
	}
	var found []graph.Edge
	for _, e := range s.Graph.Owners(o.ID) {
		if e.Kind == graph.Held || e.State != graph.Stale && e.State != graph.Dangling {
			continue
		}
		switch e.To.GroupKind() {
		case graph.Cluster, graph.ClusterClass, graph.Machine:
			found = append(found, e)
		}
	}
	return found
}

func wantUID(g *graph.Graph, e graph.Edge) string {
	if owner, ok := g.Object(e.To); ok {
		return "UID " + string(owner.UID)
	}
	return "an owner that exists"
}
