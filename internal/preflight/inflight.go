package preflight

import (
	"fmt"

	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/graph"
)

// InFlight is what a scaler has begun and not finished: a record taken now would
// describe neither the state before nor the one after.
type InFlight struct {
	adopt.Missing
	// Scalers have to work for it to finish: they must not be held meanwhile.
	Scalers []graph.ID
}

// Flying finds everything that is in flight. A Machine that is only just joining
// or leaving needs no scaler.
func Flying(s *Scope) []InFlight {
	var found []InFlight
	for _, cluster := range s.Clusters {
		counts := machinesOf(s, cluster)
		for _, o := range s.Members[cluster] {
			if what := unfinished(o); what != "" {
				found = append(found, InFlight{Missing: adopt.Missing{Object: o.ID, What: what}})
			}
			if f, ok := mending(s, o); ok {
				found = append(found, f)
			}
			if o.Facts.Replicas == nil || !scalesMachines(s, cluster, o.ID) {
				continue
			}
			if have, want := counts[o.ID], int(*o.Facts.Replicas); have != want {
				found = append(found, InFlight{
					Missing: adopt.Missing{Object: o.ID, What: fmt.Sprintf("has %d Machines and wants %d", have, want), Maker: "its controller"},
					Scalers: append([]graph.ID{o.ID}, scalersAbove(s, o.ID)...),
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

// What a control plane or a Machine carries while one of them is repaired or changed.
const (
	remediationAnnotation = "controlplane.cluster.x-k8s.io/remediation-in-progress"
	updateAnnotation      = "in-place-updates.internal.cluster.x-k8s.io/update-in-progress"
	handOverAnnotation    = "in-place-updates.internal.cluster.x-k8s.io/pending-acknowledge-move"
	hooksAnnotation       = "runtime.cluster.x-k8s.io/pending-hooks"
)

// mending finds a remediation between deletion and replacement, which a move would make
// forget why, and updates of Machines in place.
func mending(s *Scope, o *graph.Object) (InFlight, bool) {
	if _, ok := o.Annotations[remediationAnnotation]; ok {
		return InFlight{Missing: adopt.Missing{Object: o.ID, What: "is remediating a Machine", Maker: "its controller"}, Scalers: []graph.ID{o.ID}}, true
	}
	if o.GroupKind() != graph.Machine {
		return InFlight{}, false
	}
	for _, key := range []string{updateAnnotation, handOverAnnotation, hooksAnnotation} {
		if _, ok := o.Annotations[key]; !ok {
			continue
		}
		f := InFlight{Missing: adopt.Missing{Object: o.ID, What: "is being updated in place", Maker: "its controller"}}
		if owner, ok := s.Graph.Controller(o.ID); ok {
			f.Scalers = append([]graph.ID{owner.To}, scalersAbove(s, owner.To)...)
		}
		return f, true
	}
	return InFlight{}, false
}

// scalesMachines: the control plane and MachineSets own Machines one by one. A
// MachinePool's provider may or may not.
func scalesMachines(s *Scope, cluster, id graph.ID) bool {
	if id.GroupKind() == graph.MachineSet {
		return true
	}
	c, ok := s.Graph.Object(cluster)
	if !ok {
		return false
	}
	cp, ok := c.RefTo(graph.FieldControlPlaneRef)
	return ok && cp == id
}

// machinesOf counts the Machines that each object owns, by identity.
func machinesOf(s *Scope, cluster graph.ID) map[graph.ID]int {
	counts := map[graph.ID]int{}
	for _, m := range s.Members[cluster] {
		if m.GroupKind() != graph.Machine {
			continue
		}
		for _, e := range s.Graph.Owners(m.ID) {
			if e.Kind == graph.Owner {
				counts[e.To]++
			}
		}
	}
	return counts
}

// scalersAbove are the scalers that own a scaler: a MachineSet's MachineDeployment.
func scalersAbove(s *Scope, id graph.ID) []graph.ID {
	var above []graph.ID
	for _, e := range s.Graph.Owners(id) {
		if e.To.GroupKind() == graph.MachineDeployment {
			above = append(above, e.To)
		}
	}
	return above
}

// rollouts are MachineDeployments that have Machines in more than one MachineSet.
func rollouts(s *Scope, cluster graph.ID) []InFlight {
	var found []InFlight
	for _, md := range s.Members[cluster] {
		if md.GroupKind() != graph.MachineDeployment {
			continue
		}
		active, scalers := 0, []graph.ID{md.ID}
		for _, e := range s.Graph.Dependents(md.ID) {
			ms, ok := s.Graph.Object(e.From)
			if !ok || ms.GroupKind() != graph.MachineSet {
				continue
			}
			scalers = append(scalers, ms.ID)
			if ms.Facts.Replicas != nil && *ms.Facts.Replicas > 0 {
				active++
			}
		}
		if active > 1 {
			found = append(found, InFlight{
				Missing: adopt.Missing{Object: md.ID, What: fmt.Sprintf("is rolling out: %d of its MachineSets have replicas", active), Maker: "its controller"},
				Scalers: scalers,
			})
		}
	}
	return found
}
