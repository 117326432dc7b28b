package order_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/order"
)

func id(n int) graph.ID { return graph.ID{Kind: "K", Name: fmt.Sprintf("n%03d", n)} }

func ids(n ...int) []graph.ID {
	out := make([]graph.ID, len(n))
	for i, x := range n {
		out[i] = id(x)
	}
	return out
}

func levels(nodes []graph.ID, owners map[graph.ID][]graph.ID) (order.Levels, []order.Cycle) {
	return order.Of(slices.Values(nodes), func(i graph.ID) []graph.ID { return owners[i] })
}

func TestOf_OwnersComeFirst(t *testing.T) {
	owners := map[graph.ID][]graph.ID{id(2): ids(1), id(3): ids(1, 2), id(4): ids(9)}
	got, cycles := levels(ids(4, 3, 2, 1, 3), owners)
	want := order.Levels{ids(1, 4), ids(2), ids(3)} // n009 is not to be ordered: it is in place
	if diff := cmp.Diff(want, got); diff != "" || cycles != nil {
		t.Errorf("cycles %v, levels:\n%s", cycles, diff)
	}
	if diff := cmp.Diff(order.Levels{ids(3), ids(2), ids(1, 4)}, got.Reverse()); diff != "" {
		t.Errorf("Reverse:\n%s", diff)
	}
}

func TestOf_CycleSharesALevelAndIsReported(t *testing.T) {
	owners := map[graph.ID][]graph.ID{id(2): ids(3, 1), id(3): ids(2), id(4): ids(3), id(5): ids(5)}
	got, cycles := levels(ids(1, 2, 3, 4, 5), owners)
	if diff := cmp.Diff(order.Levels{ids(1, 5), ids(2, 3), ids(4)}, got); diff != "" {
		t.Errorf("levels:\n%s", diff)
	}
	if diff := cmp.Diff([]order.Cycle{ids(2, 3), ids(5)}, cycles); diff != "" {
		t.Errorf("cycles:\n%s", diff)
	}
}

// sequence is clusterctl's getMoveSequence (mover.go): rounds over all nodes until
// nothing is added. It loses what is in or below a cycle.
func sequence(nodes []graph.ID, owners map[graph.ID][]graph.ID) order.Levels {
	among, done := map[graph.ID]bool{}, map[graph.ID]bool{}
	for _, n := range nodes {
		among[n] = true
	}
	var out order.Levels
	for {
		var group []graph.ID
		for n := range among {
			ready := !done[n]
			for _, o := range owners[n] {
				ready = ready && (done[o] || !among[o])
			}
			if ready {
				group = append(group, n)
			}
		}
		if group == nil {
			return out
		}
		slices.SortFunc(group, graph.ID.Compare)
		for _, n := range group {
			done[n] = true
		}
		out = append(out, group)
	}
}

func TestOf_AgreesWithClusterctlsSequence(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 1 + r.IntN(40)
		acyclic := seed%3 != 0
		owners := map[graph.ID][]graph.ID{}
		nodes := make([]graph.ID, n)
		for i := range n {
			nodes[i] = id(i)
			for range r.IntN(3) {
				owner := r.IntN(n)
				if acyclic && owner >= i {
					continue
				}
				owners[id(i)] = append(owners[id(i)], id(owner))
			}
		}
		r.Shuffle(n, func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		got, cycles := levels(nodes, owners)
		if got.Len() != n {
			t.Fatalf("seed %d: %d of %d objects in levels: something fell out", seed, got.Len(), n)
		}
		if want := sequence(nodes, owners); len(cycles) == 0 {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d:\n%s", seed, diff)
			}
		} else if acyclic || want.Len() == n {
			t.Fatalf("seed %d: reports cycles %v where there are none", seed, cycles)
		}
		again, _ := levels(reversed(nodes), owners)
		if diff := cmp.Diff(got, again); diff != "" {
			t.Fatalf("seed %d: the order of input changes the result:\n%s", seed, diff)
		}
	}
}

func TestOf_SurvivesALongChain(t *testing.T) {
	const n = 200_000
	owners := func(i graph.ID) []graph.ID {
		var k int
		if _, err := fmt.Sscanf(i.Name, "n%d", &k); err != nil || k == 0 {
			return nil
		}
		return ids(k - 1)
	}
	nodes := make([]graph.ID, n)
	for i := range nodes {
		nodes[i] = id(i)
	}
	got, cycles := order.Of(slices.Values(nodes), owners)
	if len(got) != n || cycles != nil {
		t.Errorf("%d levels and %d cycles, want %d and none", len(got), len(cycles), n)
	}
}

func ExampleOf() {
	owners := map[graph.ID][]graph.ID{
		{Kind: "Machine", Name: "m"}:     {{Kind: "MachineSet", Name: "ms"}},
		{Kind: "MachineSet", Name: "ms"}: {{Kind: "Cluster", Name: "c"}},
	}
	nodes := []graph.ID{{Kind: "Machine", Name: "m"}, {Kind: "MachineSet", Name: "ms"}, {Kind: "Cluster", Name: "c"}}
	levels, _ := order.Of(slices.Values(nodes), func(i graph.ID) []graph.ID { return owners[i] })
	fmt.Println(levels)
	// Output: [[Cluster c] [MachineSet ms] [Machine m]]
}

func reversed(in []graph.ID) []graph.ID {
	out := slices.Clone(in)
	slices.Reverse(out)
	return out
}
