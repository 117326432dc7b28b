package watch

import (
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/move-hook/move-hook/pkg/graph"
)

// maxChain bounds the walk along owners: real chains have five links.
const maxChain = 20

// members remembers which Clusters' records name an object, so that an object
// that lost its label and its owners still wakes its Cluster.
type members struct {
	mu sync.RWMutex
	of map[graph.ID]map[graph.ID]bool
}

// add notes every object of a record; what a record names once stays noted.
func (m *members) add(s *graph.Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[graph.ID]map[graph.ID]bool{}
	}
	for _, node := range s.Nodes {
		if m.of[node.ID] == nil {
			m.of[node.ID] = map[graph.ID]bool{}
		}
		m.of[node.ID][s.Cluster] = true
	}
}

func (m *members) clusters(id graph.ID, into map[graph.ID]bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	maps.Copy(into, m.of[id])
}

// lookup is what the walk needs of the store.
type lookup interface {
	get(graph.ID) (graph.Object, bool)
}

// clustersOf maps an object to the Clusters that it concerns, sorted: those whose
// record names it, the one of its cluster-name label, the one its spec or (for
// Secrets that users provide) its name tells, and those that its owners lead to. It never looks at what happened to the object.
// Empty means that the object says nothing about whose it is.
func clustersOf(o graph.Object, m *members, objects lookup) []graph.ID {
	found := map[graph.ID]bool{}
	m.clusters(o.ID, found)
	walk(o, objects, found, map[graph.ID]bool{})
	return slices.SortedFunc(maps.Keys(found), graph.ID.Compare)
}

func walk(o graph.Object, objects lookup, found, seen map[graph.ID]bool) {
	if seen[o.ID] || len(seen) > maxChain {
		return
	}
	seen[o.ID] = true
	if o.GroupKind() == graph.Cluster {
		found[o.ID] = true
		return
	}
	if name := o.Labels[graph.ClusterNameLabel]; name != "" && o.Namespace != "" {
		found[clusterID(o.Namespace, name)] = true
	}
	if o.GroupKind() == graph.Secret && len(o.Owners) == 0 {
		if name, _, ok := graph.ParseSecretName(o.Name); ok {
			if _, exists := objects.get(clusterID(o.Namespace, name)); exists {
				found[clusterID(o.Namespace, name)] = true
			}
		}
	}
	for _, ref := range o.Refs {
		if ref.To.GroupKind() == graph.Cluster {
			found[ref.To] = true
		}
	}
	for _, owner := range o.NamedOwners() {
		id := ownerID(owner, o.Namespace)
		if id.GroupKind() == graph.Cluster {
			found[id] = true
			continue
		}
		if above, ok := objects.get(id); ok {
			walk(above, objects, found, seen)
			continue
		}
		// An owner has no namespace when it is cluster-scoped.
		id.Namespace = ""
		if above, ok := objects.get(id); ok {
			walk(above, objects, found, seen)
		}
	}
}

func clusterID(namespace, name string) graph.ID {
	return graph.ID{Group: graph.CoreGroup, Kind: "Cluster", Namespace: namespace, Name: name}
}

func ownerID(owner metav1.OwnerReference, namespace string) graph.ID {
	return graph.ID{Group: graph.GroupOf(owner.APIVersion), Kind: owner.Kind, Namespace: namespace, Name: owner.Name}
}
