package pivot

import (
	"slices"

	"github.com/move-hook/move-hook/internal/preflight"
	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

// holdOrder is the order in which scalers are held: who deletes first, then
// makers before what they make.
var holdOrder = []graph.GroupKind{graph.MachineHealthCheck, graph.MachineDeployment, graph.MachinePool, graph.MachineSet}

// scalersOf gives what creates or deletes Machines of a Cluster, in hold order,
// the control plane last: its kind is whatever the Cluster refers to.
func scalersOf(s *preflight.Scope, cluster graph.ID) []*graph.Object {
	var found []*graph.Object
	for _, kind := range holdOrder {
		for _, o := range s.Members[cluster] {
			if o.GroupKind() == kind {
				found = append(found, o)
			}
		}
	}
	if c, ok := s.Graph.Object(cluster); ok {
		if cp, ok := s.ControlPlane(c); ok {
			found = append(found, cp)
		}
	}
	return found
}

// holds are the changes that are still needed for every scaler to be held.
func holds(s *preflight.Scope, by labels.Holder) []adopt.Action {
	var actions []adopt.Action
	for _, cluster := range s.Clusters {
		for _, o := range scalersOf(s, cluster) {
			actions = change(actions, o, labels.Hold(labels.MetaOf(o), by), "hold")
		}
	}
	return actions
}

// releases take our hold off those scalers that something in flight needs.
func releases(s *preflight.Scope, flying []preflight.InFlight) []adopt.Action {
	var needed []graph.ID
	for _, f := range flying {
		needed = append(needed, f.Scalers...)
	}
	slices.SortFunc(needed, graph.ID.Compare)
	var actions []adopt.Action
	for _, id := range slices.Compact(needed) {
		if o, ok := s.Graph.Object(id); ok {
			actions = change(actions, o, labels.Release(labels.MetaOf(o)), "something is in flight that needs it")
		}
	}
	return actions
}

// pendings label the control plane and its Machines.
func pendings(s *preflight.Scope) []adopt.Action {
	var actions []adopt.Action
	for _, cluster := range s.Clusters {
		for _, o := range toLabel(s, cluster) {
			actions = change(actions, o, labels.MarkPending(labels.MetaOf(o)), "adoption is wanted on the target")
		}
	}
	return actions
}

// toLabel gives a Cluster's control plane and the control-plane Machines, without
// stand-alone ones that are never to be adopted.
func toLabel(s *preflight.Scope, cluster graph.ID) []*graph.Object {
	var found []*graph.Object
	never := false
	if c, ok := s.Graph.Object(cluster); ok {
		never = labels.OptedOut(labels.MetaOf(c))
		if cp, ok := s.ControlPlane(c); ok {
			found = append(found, cp)
		}
	}
	for _, o := range s.Members[cluster] {
		if preflight.IsControlPlaneMachine(o) && (!never || !preflight.IsStandAlone(o)) {
			found = append(found, o)
		}
	}
	return found
}

func change(actions []adopt.Action, o *graph.Object, c labels.Change, why adopt.Reason) []adopt.Action {
	if c.Empty() {
		return actions
	}
	return append(actions, adopt.ChangeMeta{On: target(o), Change: c, Reason: why})
}

func target(o *graph.Object) adopt.Target {
	return adopt.Target{ID: o.ID, UID: o.UID, ResourceVersion: o.ResourceVersion, APIVersion: o.APIVersion}
}
