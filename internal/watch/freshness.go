package watch

import (
	"sync"

	"github.com/move-hook/move-hook/pkg/graph"
)

// freshness remembers how young a graph has to be for a Cluster's next pass: as
// young as the last change that concerned it. Passes of different Clusters can
// thus share one graph although other Clusters keep changing.
type freshness struct {
	mu sync.Mutex
	// of a Cluster, of all Clusters of a namespace, of all.
	cluster   map[graph.ID]uint64
	namespace map[string]uint64
	all       uint64
}

func newFreshness() *freshness {
	return &freshness{cluster: map[graph.ID]uint64{}, namespace: map[string]uint64{}}
}

func (f *freshness) touch(cluster graph.ID, generation uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cluster[cluster] = max(f.cluster[cluster], generation)
}

// touchAll concerns every Cluster of a namespace, or (empty) all.
func (f *freshness) touchAll(namespace string, generation uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if namespace == "" {
		f.all = max(f.all, generation)
		return
	}
	f.namespace[namespace] = max(f.namespace[namespace], generation)
}

func (f *freshness) need(cluster graph.ID) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(f.cluster[cluster], f.namespace[cluster.Namespace], f.all)
}
