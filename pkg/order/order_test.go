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
		want := sequence(nodes, owners)
		if (len(cycles) > 0) != (want.Len() < n) || (acyclic && len(cycles) > 0) {
			t.Fatalf("seed %d: reports the cycles %v, and clusterctl's sequence has %d of %d objects", seed, cycles, want.Len(), n)
		}
		for l, level := range want { // Of cyclic input clusterctl's sequence has a part: that is where we have it.
			for _, o := range level {
				if !slices.Contains(got[l], o) {
					t.Fatalf("seed %d: %s should be in level %d of %v", seed, o, l, got)
				}
			}
		}
		check(t, nodes, owners, got, cycles)
		again, _ := levels(reversed(nodes), owners)
		if diff := cmp.Diff(got, again); diff != "" {
			t.Fatalf("seed %d: the order of input changes the result:\n%s", seed, diff)
		}
	}
}

// check checks the contract of Of: every object once, after its owners or beside
// them in a cycle, everything sorted.
func check(t *testing.T, nodes []graph.ID, owners map[graph.ID][]graph.ID, got order.Levels, cycles []order.Cycle) {
	t.Helper()
	level, cycle := map[graph.ID]int{}, map[graph.ID]int{}
	for l, members := range got {
		if len(members) == 0 || !slices.IsSortedFunc(members, graph.ID.Compare) {
			t.Errorf("level %d is empty or unsorted: %v", l, members)
		}
		for _, o := range members {
			if _, twice := level[o]; twice {
				t.Errorf("%s is in two levels", o)
			}
			level[o] = l
		}
	}
	for c, members := range cycles {
		if !slices.IsSortedFunc(members, graph.ID.Compare) {
			t.Errorf("the cycle %v is unsorted", members)
		}
		for _, o := range members {
			if _, twice := cycle[o]; twice {
				t.Errorf("%s is in two cycles", o)
			}
			cycle[o] = c + 1
		}
	}
	for _, o := range nodes {
		at, ok := level[o]
		if !ok {
			t.Errorf("%s fell out", o)
		}
		for _, owner := range owners[o] {
			before, among := level[owner]
			together := cycle[o] != 0 && cycle[o] == cycle[owner]
			if among && before >= at && !together {
				t.Errorf("%s (level %d) does not come after its owner %s (level %d)", o, at, owner, before)
			}
			if together && before != at {
				t.Errorf("%s and %s are in one cycle and in two levels", o, owner)
			}
		}
	}
}

func TestOf_NothingGivesNothing(t *testing.T) {
	got, cycles := levels(nil, nil)
	if got.Len() != 0 || len(got.Reverse()) != 0 || cycles != nil {
		t.Errorf("levels %v, cycles %v", got, cycles)
	}
}

func TestReverse_DoesNotChangeItsReceiver(t *testing.T) {
	l := order.Levels{ids(1), ids(2)}
	if l.Reverse(); !slices.Equal(l[0], ids(1)) {
		t.Errorf("became %v", l)
	}
}

func FuzzOf(f *testing.F) {
	f.Add([]byte{1, 0, 2, 1, 3, 2})
	f.Add([]byte{1, 2, 2, 1, 3, 1, 0, 0})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, edges []byte) {
		owners := map[graph.ID][]graph.ID{}
		var nodes []graph.ID
		for i := 0; i+1 < len(edges); i += 2 {
			from := id(int(edges[i]))
			owners[from] = append(owners[from], id(int(edges[i+1])))
			nodes = append(nodes, from)
		}
		got, cycles := levels(nodes, owners)
		check(t, nodes, owners, got, cycles)
	})
}

// BenchmarkOf45k levels 1,000 trees of 45 objects.
func BenchmarkOf45k(b *testing.B) {
	owners := map[graph.ID][]graph.ID{}
	var nodes []graph.ID
	for c := range 1000 {
		first := graph.ID{Kind: "Cluster", Namespace: "fleet", Name: fmt.Sprintf("c%d", c)}
		nodes = append(nodes, first)
		for n := 1; n < 45; n++ {
			o := graph.ID{Kind: "Machine", Namespace: "fleet", Name: fmt.Sprintf("c%d-%d", c, n)}
			owner := first
			if n > 2 {
				owner = nodes[len(nodes)-1-n/2]
			}
			owners[o] = []graph.ID{owner}
			nodes = append(nodes, o)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		got, cycles := levels(nodes, owners)
		if got.Len() != 45_000 || cycles != nil {
			b.Fatalf("%d objects, cycles %v", got.Len(), cycles)
		}
	}
}

func TestOf_SurvivesALongChain(t *testing.T) {
	const n = 100_000
	owners := map[graph.ID][]graph.ID{}
	nodes := make([]graph.ID, n)
	for i := range nodes {
		nodes[i] = id(i)
		if i > 0 {
			owners[nodes[i]] = nodes[i-1 : i]
		}
	}
	got, cycles := levels(nodes, owners)
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
