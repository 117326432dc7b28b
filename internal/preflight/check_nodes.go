package preflight

import (
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// checkNodes finds Machines that have not joined their cluster; clusterctl refuses
// them too (mover.go, checkProvisioningCompleted).
func checkNodes(s *Scope) []finding.Finding {
	var found []finding.Finding
	for _, o := range s.All() {
		if o.GroupKind() != graph.Machine || o.Facts.NodeName != "" || o.Deleting {
			continue
		}
		found = append(found, finding.Finding{
			ID: "MachineWithoutNode", Severity: finding.Stops, Object: o.String(),
			Field: "status.nodeRef", Have: "not set", Want: "the name of its node",
			Message: "has not joined its cluster",
			Remedy:  "wait until it has, or delete it, then run the command again",
		})
	}
	return found
}
