package adopt

import (
	"fmt"
	"testing"
	"time"

	"github.com/move-hook/move-hook/pkg/graph"
)

// fleet is a graph of so many clusters of 45 objects each, as a restore leaves them.
func fleet(clusters int) (*graph.Graph, time.Time) {
	now := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	objects := func(yield func(graph.Object) bool) {
		for i := range clusters {
			name := fmt.Sprintf("c%d", i)
			s := sample{name: name, controlPlane: 3, workers: []workers{{name: name + "-md", replicas: 5}}}
			for _, o := range s.objects() {
				o := arrival{owners: "none", held: true, pending: true, status: true}.carried(o)
				metaOf(o)["uid"] = newUID(extract(o).ID)
				metaOf(o)["creationTimestamp"] = now.Format(time.RFC3339)
				if !yield(extract(o)) {
					return
				}
			}
		}
	}
	return graphOf(objects, nil), now.Add(time.Minute)
}

func fleetState(g *graph.Graph, now time.Time, i int) State {
	return State{Now: now, Cluster: coreID(graph.Cluster, fmt.Sprintf("c%d", i)), Graph: g, Policy: Policy{Settle: 5 * time.Second}}
}

// BenchmarkDecide decides about one Cluster after another, in graphs of growing
// size: the time of one decision must not grow with the graph.
func BenchmarkDecide(b *testing.B) {
	for _, clusters := range []int{10, 100, 1000} {
		g, now := fleet(clusters)
		b.Run(fmt.Sprintf("objects=%d", g.Len()), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if p := Decide(fleetState(g, now, i%clusters)); p.Phase != Adopting {
					b.Fatal(p)
				}
			}
		})
	}
}

func TestDecide_CostGrowsWithTheClusterNotTheGraph(t *testing.T) {
	allocs := func(clusters int) float64 {
		g, now := fleet(clusters)
		s := fleetState(g, now, 0)
		return testing.AllocsPerRun(5, func() { Decide(s) })
	}
	small, large := allocs(2), allocs(60)
	if large > small*1.05 {
		t.Errorf("a decision among 60 clusters allocates %.0f times, among 2 clusters %.0f times", large, small)
	}
}
