package pivot

import (
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// checkProvisioned finds Clusters that are still being made, as clusterctl does
// (mover.go, checkProvisioningCompleted). Whether the control plane is initialized
// is read from its Machines: the first that has joined proves it.
func checkProvisioned(s *scope) []finding.Finding {
	var found []finding.Finding
	for _, id := range s.clusters {
		cluster, ok := s.graph.Object(id)
		if !ok {
			continue
		}
		if !cluster.Facts.InfrastructureProvisioned {
			found = append(found, finding.Finding{
				ID: "InfrastructureNotProvisioned", Severity: finding.Stops, Object: id.String(),
				Field: "status.initialization.infrastructureProvisioned", Have: "false", Want: "true",
				Message: "its infrastructure is still being provisioned",
				Remedy:  "wait until it is, then run the command again",
			})
		}
		if cp, ok := controlPlaneOf(s, cluster); ok && wantsMachines(cp) && !joined(s, id) {
			found = append(found, finding.Finding{
				ID: "ControlPlaneNotInitialized", Severity: finding.Stops, Object: cp.String(),
				Message: "none of its Machines has joined as a node yet",
				Remedy:  "wait until the control plane is initialized, then run the command again",
			})
		}
	}
	return found
}

func controlPlaneOf(s *scope, cluster *graph.Object) (*graph.Object, bool) {
	id, ok := cluster.RefTo(graph.FieldControlPlaneRef)
	if !ok {
		return nil, false
	}
	return s.graph.Object(id)
}

// wantsMachines: control planes that a provider hosts have no replicas.
func wantsMachines(cp *graph.Object) bool {
	return cp.Facts.Replicas != nil && *cp.Facts.Replicas > 0
}

func joined(s *scope, cluster graph.ID) bool {
	for _, m := range s.members[cluster] {
		if isControlPlaneMachine(m) && m.Facts.NodeName != "" {
			return true
		}
	}
	return false
}

func isControlPlaneMachine(o *graph.Object) bool {
	_, ok := o.Labels[graph.ControlPlaneLabel]
	return ok && o.GroupKind() == graph.Machine
}
