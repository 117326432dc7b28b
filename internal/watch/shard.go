package watch

import (
	"hash/fnv"

	"github.com/move-hook/move-hook/pkg/graph"
)

// Shard is the share of one of several runs that divide the Clusters among them.
// The zero value is everything.
type Shard struct {
	// Index is at least 0 and less than Count; Count 0 or 1 is everything.
	Index, Count int
}

// Has says whether the Cluster falls to this run. Of runs with the same Count and
// all indices exactly one has it, whatever else exists: the hash is of namespace
// and name alone, so that a Cluster stays where it is when others come and go.
func (s Shard) Has(cluster graph.ID) bool {
	if s.Count <= 1 {
		return true
	}
	h := fnv.New64a()
	// A hash takes everything.
	_, _ = h.Write([]byte(cluster.Namespace + "/" + cluster.Name))
	// The low bits of FNV depend on the last bytes above all, and names of a fleet
	// differ in those; folded, all bits do their part.
	sum := h.Sum64()
	sum ^= sum >> 32
	return sum%uint64(s.Count) == uint64(s.Index)
}
