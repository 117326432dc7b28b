package pivot

import (
	"context"
	"fmt"

	"github.com/move-hook/move-hook/internal/rollout"
	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/finding"
)

// askRollouts asks upstream which Machines the control plane will replace. Nothing
// of it is wrong with the pivot: it is told, and counts as no finding of the outcome.
func (v *verification) askRollouts(ctx context.Context, s adopt.State) ([]finding.Finding, error) {
	controlPlane, machines := adopt.ControlPlaneMachines(s.Cluster, s.Graph)
	if len(machines) == 0 {
		return nil, nil
	}
	answer, err := rollout.Ask(ctx, v.o.Target, s.Cluster, controlPlane, machines)
	if err != nil {
		return nil, fmt.Errorf("asking whether %s would replace Machines: %w", controlPlane, err)
	}
	s.Rollout, s.RolloutUnknown = answer.Verdicts, answer.Unknown
	// What is installed is only told: that it cannot be read is no reason to stop.
	s.ProviderVersion, _ = v.o.Target.KubeadmProviderVersion(ctx)
	return adopt.VerifyRollout(s), nil
}
