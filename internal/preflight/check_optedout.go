package preflight

import (
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

// checkOptedOut finds Clusters whose user wants no adoption and whose control plane
// would adopt stand-alone Machines on the target nevertheless: a KubeadmControlPlane
// adopts what carries its labels. Without a control plane there is nobody to adopt.
func checkOptedOut(s *Scope) []finding.Finding {
	var found []finding.Finding
	for _, cluster := range s.Clusters {
		o, ok := s.Graph.Object(cluster)
		if !ok || !labels.OptedOut(labels.MetaOf(o)) {
			continue
		}
		if _, refers := o.RefTo(graph.FieldControlPlaneRef); !refers || !hasStandAlone(s, cluster) {
			continue
		}
		found = append(found, OptedOut(cluster))
	}
	return found
}

func hasStandAlone(s *Scope, cluster graph.ID) bool {
	for _, o := range s.Members[cluster] {
		if IsControlPlaneMachine(o) && IsStandAlone(o) {
			return true
		}
	}
	return false
}

// OptedOut is the finding of a Cluster whose stand-alone Machines are never to be adopted.
func OptedOut(cluster graph.ID) finding.Finding {
	return finding.Finding{
		ID: "AdoptionOptedOut", Severity: finding.Stops, Object: cluster.String(),
		Field: "metadata.annotations[" + labels.Adoption + "]", Have: labels.Never,
		Message: "its stand-alone control-plane Machines are never to be adopted",
		Remedy:  "kubectl annotate " + resource(cluster) + " " + labels.Adoption + "- if they are to be",
	}
}
