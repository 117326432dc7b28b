package preflight

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/move-hook/move-hook/pkg/graph"
)

// Scope is what a flow looks at on one side: the graph and the Clusters in it
// that the flow is about.
type Scope struct {
	Graph    *graph.Graph
	Clusters []graph.ID
	Moves    map[graph.ID]graph.Membership
	// Members are the objects of each Cluster, without the record's ConfigMaps.
	Members map[graph.ID][]*graph.Object

	// member and all are Members once more, by identity and in one.
	member map[graph.ID]bool
	all    []*graph.Object
	// hints is what hinted has found.
	hints map[graph.ID]graph.Edge
}

// NewScope works out what moves and what belongs to each of the Clusters.
func NewScope(g *graph.Graph, clusters []graph.ID) *Scope {
	s := &Scope{Graph: g, Clusters: clusters, Moves: map[graph.ID]graph.Membership{}, Members: map[graph.ID][]*graph.Object{}, member: map[graph.ID]bool{}}
	for _, m := range g.MoveSet() {
		s.Moves[m.ID] = m
	}
	for _, cluster := range clusters {
		for _, id := range g.Belongs(cluster) {
			if o, ok := g.Object(id); ok && !graph.IsRecord(o) {
				s.Members[cluster] = append(s.Members[cluster], o)
				if !s.member[id] {
					s.member[id] = true
					s.all = append(s.all, o)
				}
			}
		}
	}
	slices.SortFunc(s.all, func(a, b *graph.Object) int { return a.Compare(b.ID) })
	return s
}

// Select gives the named Clusters that exist, or all of the namespace.
func Select(g *graph.Graph, namespace string, names []types.NamespacedName) []graph.ID {
	var found []graph.ID
	for _, o := range g.OfKind(graph.Cluster) {
		named := slices.Contains(names, types.NamespacedName{Namespace: o.Namespace, Name: o.Name})
		inNamespace := namespace == "" || o.Namespace == namespace
		if named || len(names) == 0 && inNamespace {
			found = append(found, o.ID)
		}
	}
	return found
}

// All gives every member of every Cluster once, sorted. The slice must not be changed.
func (s *Scope) All() []*graph.Object { return s.all[:len(s.all):len(s.all)] }

func (s *Scope) belongs(id graph.ID) bool { return s.member[id] }

// Snapshot is the record of one Cluster.
func (s *Scope) Snapshot(cluster graph.ID) graph.Snapshot {
	return s.Graph.SnapshotOf(cluster, func(id graph.ID) bool { return s.Moves[id].In })
}

// ControlPlane is the object that a Cluster names as its control plane; false if it
// names none, or that was not seen.
func (s *Scope) ControlPlane(cluster *graph.Object) (*graph.Object, bool) {
	id, ok := cluster.RefTo(graph.FieldControlPlaneRef)
	if !ok {
		return nil, false
	}
	return s.Graph.Object(id)
}

// IsControlPlaneMachine says that a control plane would take the object for one of its Machines.
func IsControlPlaneMachine(o *graph.Object) bool {
	_, ok := o.Labels[graph.ControlPlaneLabel]
	return ok && o.GroupKind() == graph.Machine
}

// IsStandAlone says that nothing controls the object.
func IsStandAlone(o *graph.Object) bool {
	for _, owner := range o.Owners {
		if owner.Controller != nil && *owner.Controller {
			return false
		}
	}
	return true
}
