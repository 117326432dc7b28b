package preflight

import (
	"fmt"
	"slices"

	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/labels"
)

// checkLiveOnTarget finds copies of the Clusters on the target that are reconciled
// there. A paused copy may be what an interrupted move left, which clusterctl updates.
func checkLiveOnTarget(in Input) []finding.Finding {
	var found []finding.Finding
	for i := range in.Target.Clusters {
		o := &in.Target.Clusters[i]
		m := labels.MetaOf(o)
		if !slices.Contains(in.Source.Clusters, o.ID) || m.SpecPaused || labels.PausedByAnnotation(m) {
			continue
		}
		found = append(found, finding.Finding{
			ID: "LiveOnTarget", Severity: finding.Stops, Object: o.ID.String(),
			Field: "spec.paused", Have: "not set", Want: "true",
			Message: fmt.Sprintf("is on %s already and not paused: both copies are reconciled", in.Target.Name),
			Remedy:  "see `move-hook status`",
		})
	}
	return found
}
