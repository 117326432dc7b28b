package pivot

import (
	"slices"

	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// scope is what a flow looks at on one side: the graph and the Clusters in it
// that the flow is about.
type scope struct {
	graph    *graph.Graph
	clusters []graph.ID
	moves    map[graph.ID]graph.Membership
	// members are the objects of each Cluster, without the record's ConfigMaps.
	members map[graph.ID][]*graph.Object
}

func newScope(g *graph.Graph, clusters []graph.ID) *scope {
	s := &scope{graph: g, clusters: clusters, moves: map[graph.ID]graph.Membership{}, members: map[graph.ID][]*graph.Object{}}
	for _, m := range g.MoveSet() {
		s.moves[m.ID] = m
	}
	for _, cluster := range clusters {
		for _, id := range g.Belongs(cluster) {
			if o, ok := g.Object(id); ok && !graph.IsRecord(o) {
				s.members[cluster] = append(s.members[cluster], o)
			}
		}
	}
	return s
}

// all gives every member of every Cluster once, sorted.
func (s *scope) all() []*graph.Object {
	seen := map[graph.ID]bool{}
	var all []*graph.Object
	for _, cluster := range s.clusters {
		for _, o := range s.members[cluster] {
			if !seen[o.ID] {
				seen[o.ID] = true
				all = append(all, o)
			}
		}
	}
	slices.SortFunc(all, func(a, b *graph.Object) int { return a.Compare(b.ID) })
	return all
}

// snapshot is the record of one Cluster.
func (s *scope) snapshot(cluster graph.ID) graph.Snapshot {
	return s.graph.SnapshotOf(cluster, func(id graph.ID) bool { return s.moves[id].In })
}

// check looks for one fault on the source before anything is touched. Each has a
// file of its own, and its finding's ID is documented in docs/pivot.md.
type check func(*scope) []finding.Finding

// checks are run by Pre, in this order.
func checks() []check {
	return []check{
		checkPaused,
		checkProvisioned,
		checkNodes,
		checkDeleting,
		checkUnseenOwner,
		checkOptedOut,
		checkLeftBehind,
	}
}

func runChecks(s *scope) []finding.Finding {
	var all []finding.Finding
	for _, c := range checks() {
		all = append(all, c(s)...)
	}
	finding.Sort(all)
	return all
}

func stops(fs []finding.Finding) bool {
	return slices.ContainsFunc(fs, func(f finding.Finding) bool { return f.Severity == finding.Stops })
}
