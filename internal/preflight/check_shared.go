package preflight

import (
	"fmt"
	"maps"
	"slices"

	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// checkShared finds what is on both sides after the move, because clusterctl copies it
// and leaves the source's: ClusterClasses of another namespace or with Clusters that
// stay (objectgraph.go, setShouldNotDelete), and cluster-scoped objects with what they
// own (mover.go, deleteSourceObject). What is said of one later is not said of the other.
func checkShared(in Input) []finding.Finding {
	s := in.Source
	var found []finding.Finding
	note := func(o *graph.Object, why string) {
		found = append(found, finding.Finding{
			ID: "StaysOnBothSides", Severity: finding.Notes, Object: o.String(),
			Message: why + ": clusterctl copies it and leaves the source's copy, so later changes have to be made on both sides",
		})
	}
	hinted := s.hinted()
	seen := s.All()
	for _, id := range slices.SortedFunc(maps.Keys(hinted), graph.ID.Compare) {
		if o, ok := s.Graph.Object(id); ok && !s.belongs(id) {
			seen = append(seen, o)
		}
	}
	for _, o := range seen {
		if !s.Moves[o.ID].In {
			continue
		}
		switch stays, ok := user(in, o.ID); {
		case o.Namespace == "":
			note(o, "is cluster-scoped")
		case o.GroupKind() == graph.ClusterClass && in.Namespace != "" && o.Namespace != in.Namespace:
			note(o, "is in another namespace")
		case ok:
			note(o, fmt.Sprintf("is used by %s, which stays", stays))
		}
	}
	return found
}

// user is a Cluster of another namespace that uses a ClusterClass and stays.
func user(in Input, class graph.ID) (graph.ID, bool) {
	if class.GroupKind() != graph.ClusterClass || in.Namespace == "" {
		return graph.ID{}, false
	}
	for i := range in.Others {
		o := &in.Others[i]
		if to, ok := o.RefTo(graph.FieldClassRef); ok && to == class && o.Namespace != in.Namespace {
			return o.ID, true
		}
	}
	return graph.ID{}, false
}
