package pivot

import (
	"fmt"

	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/graph"
)

// inFlight is what a scaler has begun and not finished: a record taken now would
// describe neither the state before nor the one after.
type inFlight struct {
	adopt.Missing
	// scalers have to work for it to finish: they must not be held meanwhile.
	scalers []graph.ID
}

// flying finds everything that is in flight. A Machine that is only just joining
// or leaving needs no scaler.
func flying(s *scope) []inFlight {
	var found []inFlight
	for _, cluster := range s.clusters {
		counts := machinesOf(s, cluster)
		for _, o := range s.members[cluster] {
			if what := unfinished(o); what != "" {
				found = append(found, inFlight{Missing: adopt.Missing{Object: o.ID, What: what}})
			}
			if o.Facts.Replicas == nil || !scalesMachines(s, cluster, o.ID) {
				continue
			}
			if have, want := counts[o.ID], int(*o.Facts.Replicas); have != want {
				found = append(found, inFlight{
					Missing: adopt.Missing{Object: o.ID, What: fmt.Sprintf("has %d Machines and wants %d", have, want), Maker: "its controller"},
					scalers: append([]graph.ID{o.ID}, scalersAbove(s, o.ID)...),
				})
			}
		}
		found = append(found, rollouts(s, cluster)...)
	}
	return found
}

func unfinished(o *graph.Object) string {
	switch {
	case o.GroupKind() != graph.Machine:
		return ""
	case o.Deleting:
		return "is being deleted"
	case o.Facts.NodeName == "":
		return "has not joined its cluster"
	default:
		return ""
	}
}

// scalesMachines: the control plane and MachineSets own Machines one by one. A
// MachinePool's provider may or may not.
func scalesMachines(s *scope, cluster, id graph.ID) bool {
	if id.GroupKind() == graph.MachineSet {
		return true
	}
	c, ok := s.graph.Object(cluster)
	if !ok {
		return false
	}
	cp, ok := c.RefTo(graph.FieldControlPlaneRef)
	return ok && cp == id
}

// machinesOf counts the Machines that each object owns, by identity.
func machinesOf(s *scope, cluster graph.ID) map[graph.ID]int {
	counts := map[graph.ID]int{}
	for _, m := range s.members[cluster] {
		if m.GroupKind() != graph.Machine {
			continue
		}
		for _, e := range s.graph.Owners(m.ID) {
			if e.Kind == graph.Owner {
				counts[e.To]++
			}
		}
	}
	return counts
}

// scalersAbove are the scalers that own a scaler: a MachineSet's MachineDeployment.
func scalersAbove(s *scope, id graph.ID) []graph.ID {
	var above []graph.ID
	for _, e := range s.graph.Owners(id) {
		if e.To.GroupKind() == graph.MachineDeployment {
			above = append(above, e.To)
		}
	}
	return above
}

// rollouts are MachineDeployments that have Machines in more than one MachineSet.
func rollouts(s *scope, cluster graph.ID) []inFlight {
	var found []inFlight
	for _, md := range s.members[cluster] {
		if md.GroupKind() != graph.MachineDeployment {
			continue
		}
		active, scalers := 0, []graph.ID{md.ID}
		for _, e := range s.graph.Dependents(md.ID) {
			ms, ok := s.graph.Object(e.From)
			if !ok || ms.GroupKind() != graph.MachineSet {
				continue
			}
			scalers = append(scalers, ms.ID)
			if ms.Facts.Replicas != nil && *ms.Facts.Replicas > 0 {
				active++
			}
		}
		if active > 1 {
			found = append(found, inFlight{
				Missing: adopt.Missing{Object: md.ID, What: fmt.Sprintf("is rolling out: %d of its MachineSets have replicas", active), Maker: "its controller"},
				scalers: scalers,
			})
		}
	}
	return found
}
