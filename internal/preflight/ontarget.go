package preflight

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/move-hook/move-hook/pkg/graph"
)

// Inventories are clusterctl's of both sides.
type Inventories struct {
	Source, Target []Provider
	// Read is false where one of them could not be.
	Read bool
}

// Provider is one entry of clusterctl's inventory.
type Provider struct {
	// Type and Name tell one provider from another: "InfrastructureProvider", "docker".
	Type, Name string
	Version    string
}

// Room is what a namespace of the target leaves for objects that are to come.
type Room struct {
	Exists, Terminating bool
	Quotas              []Quota
}

// Quota is a ResourceQuota, as far as it counts objects.
type Quota struct {
	Name       string
	Hard, Used map[string]int64
}

// KindFacts are how the target serves a kind that moves.
type KindFacts struct {
	// Version is the one in which clusterctl creates objects of it: the source's stored one.
	Version string
	// Served are the versions of the target, Resource is its plural there.
	Served   []string
	Resource string
	// Labelled: clusterctl discovers it there.
	Labelled bool
	// Unknown is why nobody can say whether it is served.
	Unknown string
}

// Copy is an object of the target that has the name of one that moves.
type Copy struct {
	Labels   map[string]string
	Deleting bool
	// Kept: clusterctl would not update it.
	Kept bool
	// Differs are the fields in which it is another; Refused is what the server said
	// to clusterctl's update of it, nil where it would take that or was not asked.
	Differs []Difference
	Refused *metav1.Status
}

// moving are the objects that clusterctl takes along, sorted.
func (s *Scope) moving() []graph.ID {
	var ids []graph.ID
	for id, m := range s.Moves {
		if m.In {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, graph.ID.Compare)
	return ids
}

// Moving gives the objects that clusterctl takes along by kind, each kind sorted.
func (s *Scope) Moving() map[graph.GroupKind][]graph.ID {
	byKind := map[graph.GroupKind][]graph.ID{}
	for _, id := range s.moving() {
		byKind[id.GroupKind()] = append(byKind[id.GroupKind()], id)
	}
	return byKind
}
