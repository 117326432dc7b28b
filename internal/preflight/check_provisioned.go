package preflight

import (
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// checkProvisioned finds Clusters that are still being made, as clusterctl does
// (mover.go, checkProvisioningCompleted). Whether the control plane is initialized
// is read from its Machines: the first that has joined proves it.
func checkProvisioned(s *Scope) []finding.Finding {
	var found []finding.Finding
	for _, id := range s.Clusters {
		cluster, ok := s.Graph.Object(id)
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
		if cp, ok := s.ControlPlane(cluster); ok && wantsMachines(cp) && !joined(s, id) {
			found = append(found, finding.Finding{
				ID: "ControlPlaneNotInitialized", Severity: finding.Stops, Object: cp.String(),
				Message: "none of its Machines has joined as a node yet",
				Remedy:  "wait until the control plane is initialized, then run the command again",
			})
		}
	}
	return found
}

// wantsMachines: control planes that a provider hosts have no replicas.
func wantsMachines(cp *graph.Object) bool {
	return cp.Facts.Replicas != nil && *cp.Facts.Replicas > 0
}

func joined(s *Scope, cluster graph.ID) bool {
	for _, m := range s.Members[cluster] {
		if IsControlPlaneMachine(m) && m.Facts.NodeName != "" {
			return true
		}
	}
	return false
}
