package preflight

import (
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// TargetFacts are what was read of the target: all that the checks of the target know.
type TargetFacts struct {
	// Name is how messages call the target.
	Name string
	// Clusters are those of the scope's namespaces that are there already.
	Clusters []graph.Object
}

// targetChecks compare the source with the target.
func targetChecks() []check {
	var all []check
	for _, c := range []check{
		checkLiveOnTarget,
	} {
		all = append(all, onlyWithTarget(c))
	}
	return all
}

func onlyWithTarget(c check) check {
	return func(in Input) []finding.Finding {
		if in.Target == nil {
			return nil
		}
		return c(in)
	}
}
