package watch

import (
	"fmt"
	"testing"

	"github.com/move-hook/move-hook/pkg/graph"
)

func TestShard_EachClusterHasExactlyOneAndNoneHasTooMany(t *testing.T) {
	t.Parallel()
	const clusters = 1000
	for _, count := range []int{2, 3, 4, 10} {
		of := make([]int, count)
		for i := range clusters {
			cluster := clusterID("fleet", fmt.Sprintf("c%d", i))
			had := 0
			for index := range count {
				if (Shard{Index: index, Count: count}).Has(cluster) {
					had++
					of[index]++
				}
			}
			if had != 1 {
				t.Fatalf("of %d shards %d have %s", count, had, cluster)
			}
		}
		for index, n := range of {
			if fair := clusters / count; n < fair/2 || n > 2*fair {
				t.Errorf("shard %d of %d has %d of %d Clusters", index, count, n, clusters)
			}
		}
	}
}

func TestShard_AloneItHasEverything(t *testing.T) {
	t.Parallel()
	for _, s := range []Shard{{}, {Index: 0, Count: 1}} {
		if !s.Has(graph.ID{Namespace: "fleet", Name: "c1"}) {
			t.Errorf("%+v leaves a Cluster out", s)
		}
	}
}

// A Job's pods may be of different versions while it is changed: which shard has a
// Cluster is part of the interface.
func TestShard_StaysTheSameFromVersionToVersion(t *testing.T) {
	t.Parallel()
	got := ""
	for i := range 12 {
		for index := range 4 {
			if (Shard{Index: index, Count: 4}).Has(clusterID("fleet", fmt.Sprintf("c%d", i))) {
				got += fmt.Sprint(index)
			}
		}
	}
	if want := "032103210321"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
