package preflight

import (
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

// checkPaused finds Clusters and ClusterClasses that clusterctl refuses to move
// (mover.go, checkClustersNotPaused and checkClusterClassesNotPaused).
func checkPaused(s *Scope) []finding.Finding {
	var found []finding.Finding
	for _, o := range s.All() {
		f := finding.Finding{ID: "Paused", Severity: finding.Stops, Object: o.String(), Have: "true", Want: "not set"}
		m := labels.MetaOf(o)
		switch {
		case o.GroupKind() != graph.Cluster && o.GroupKind() != graph.ClusterClass:
			continue
		case m.SpecPaused:
			f.Field = "spec.paused"
			f.Message = "is paused, and clusterctl moves no paused Cluster"
			f.Remedy = "if you paused it, unpause it; if an interrupted clusterctl did, see `move-hook status`"
		case labels.PausedByAnnotation(m):
			f.Field, f.Have = "metadata.annotations["+labels.Paused+"]", "set"
			f.Message = "is paused, and clusterctl moves nothing paused"
			f.Remedy = "kubectl annotate " + resource(o.ID) + " " + labels.Paused + "-"
		default:
			continue
		}
		found = append(found, f)
	}
	return found
}
