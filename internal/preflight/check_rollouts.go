package preflight

import (
	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// checkRollouts tells which control-plane Machines will be replaced, as upstream judges.
func checkRollouts(in Input) []finding.Finding {
	var found []finding.Finding
	for _, cluster := range in.Source.Clusters {
		r, asked := in.Rollouts[cluster]
		if !asked {
			continue
		}
		found = append(found, adopt.VerifyRollout(adopt.State{
			Cluster: cluster, Graph: in.Source.Graph, Rollout: r.Verdicts, RolloutUnknown: r.Unknown, ProviderVersion: r.ProviderVersion,
		})...)
	}
	return found
}

// RolloutQuestion gives the control plane and the Machines that upstream can be asked
// about; none where the Cluster has no KubeadmControlPlane.
func RolloutQuestion(s *Scope, cluster graph.ID) (controlPlane graph.ID, machines []graph.ID) {
	return adopt.ControlPlaneMachines(cluster, s.Graph)
}
