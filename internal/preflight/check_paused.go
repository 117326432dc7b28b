package preflight

import (
	"fmt"

	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

// checkPaused finds Clusters and ClusterClasses that clusterctl refuses to move
// (mover.go, checkClustersNotPaused and checkClusterClassesNotPaused), and says whose
// pause it is.
func checkPaused(s *Scope) []finding.Finding {
	var found []finding.Finding
	for _, o := range s.All() {
		f := finding.Finding{ID: "Paused", Severity: finding.Stops, Object: o.String(), Have: "true", Want: "not set"}
		m := labels.MetaOf(o)
		var unpause string
		switch {
		case o.GroupKind() != graph.Cluster && o.GroupKind() != graph.ClusterClass:
			continue
		case m.SpecPaused:
			f.Field = "spec.paused"
			unpause = "kubectl patch " + resource(o.ID) + ` --type=merge -p '{"spec":{"paused":null}}'`
		case labels.PausedByAnnotation(m):
			f.Field, f.Have = "metadata.annotations["+labels.Paused+"]", "set"
			unpause = "kubectl annotate " + resource(o.ID) + " " + labels.Paused + "-"
		default:
			continue
		}
		f.Message, f.Remedy = whosePause(s, o, m, unpause)
		found = append(found, f)
	}
	return found
}

// whosePause: our hold has our mark. A prepared Cluster was not paused when its record
// was made, because pre refuses paused ones: since then only clusterctl pauses it, and
// takes the pause off at its end. clusterctl leaves no mark of its own before it deletes.
func whosePause(s *Scope, o *graph.Object, m labels.Meta, unpause string) (message, remedy string) {
	if holder, ok := labels.HolderOf(m); ok {
		return fmt.Sprintf("is held by %s: a pivot to this management cluster has not ended", holder.Who),
			"run `move-hook post` here until it is done"
	}
	if s.interrupted(o) {
		return "is paused by a clusterctl move that was interrupted",
			"`move-hook resume` goes on with it, `move-hook rollback` undoes it; see `move-hook status`"
	}
	return "is paused by its user, and clusterctl moves nothing paused",
		unpause + " if you paused it; if an interrupted clusterctl did, see `move-hook status`"
}

// interrupted says that a pivot of the Cluster, or of one of this ClusterClass, has begun.
func (s *Scope) interrupted(o *graph.Object) bool {
	for _, cluster := range s.Clusters {
		c, ok := s.Graph.Object(cluster)
		if !ok || cluster != o.ID && o.GroupKind() == graph.Cluster {
			continue
		}
		if _, announced := c.Annotations[labels.Record]; announced {
			return true
		}
		for _, member := range s.Members[cluster] {
			if _, leaving := member.Annotations[graph.DeleteForMoveAnnotation]; leaving {
				return true
			}
		}
	}
	return false
}
