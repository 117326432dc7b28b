package preflight

import (
	"fmt"

	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// checkSelectors finds scalers that select what is another's: without owner references,
// as after a restore, they would adopt it and scale it away.
func checkSelectors(s *Scope) []finding.Finding {
	var found []finding.Finding
	for _, cluster := range s.Clusters {
		found = append(found, overlaps(s, cluster, graph.MachineDeployment, graph.MachineSet)...)
		found = append(found, overlaps(s, cluster, graph.MachineSet, graph.Machine)...)
	}
	return found
}

// overlaps names each scaler once, with the first thing of another's that it selects.
func overlaps(s *Scope, cluster graph.ID, scaler, scaled graph.GroupKind) []finding.Finding {
	var scalers, all []*graph.Object
	for _, o := range s.Members[cluster] {
		switch o.GroupKind() {
		case scaler:
			if len(o.Facts.Selector) > 0 && !o.Facts.SelectorExpressions {
				scalers = append(scalers, o)
			}
		case scaled:
			all = append(all, o)
		}
	}
	if len(scalers) < 2 && scaler == graph.MachineDeployment {
		return nil
	}
	var found []finding.Finding
	for _, by := range scalers {
		for _, o := range all {
			owner, controlled := s.Graph.Controller(o.ID)
			if !controlled || owner.To == by.ID || owner.To.GroupKind() != scaler || !selects(by.Facts.Selector, o.Labels) {
				continue
			}
			found = append(found, finding.Finding{
				ID: "OverlappingSelectors", Severity: finding.Harms, Object: by.String(), Field: "spec.selector",
				Message: fmt.Sprintf("selects %s too, which is %s's: where owner references are lost it would adopt it", o.ID, owner.To),
				Remedy:  "let move-hook post put the owners right before anything is released, or make a " + scaler.Kind + " whose selector and template have a label of its own",
			})
			break
		}
	}
	return found
}

func selects(selector, labels map[string]string) bool {
	for k, v := range selector {
		if have, ok := labels[k]; !ok || have != v {
			return false
		}
	}
	return true
}
