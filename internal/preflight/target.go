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
	// Providers are clusterctl's inventories of both sides.
	Providers Inventories
	// Kinds are those of the objects that move.
	Kinds map[graph.GroupKind]KindFacts
	// Rooms are the namespaces of the objects that move.
	Rooms map[string]Room
	// There are the objects that have the name of one that moves.
	There map[graph.ID]Copy
	// Refusals are what the target said to objects that it was offered and would not take.
	Refusals []Refusal
}

// targetChecks compare the source with the target.
func targetChecks() []check {
	var all []check
	for _, c := range []check{
		checkLiveOnTarget,
		checkProviders,
		checkKinds,
		checkNamespaces,
		checkQuotas,
		checkNameClash,
		checkRefused,
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
