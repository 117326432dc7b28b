// Package order puts objects into levels, owners first.
package order

import (
	"iter"
	"slices"

	"github.com/move-hook/move-hook/pkg/graph"
)

// Levels are groups of objects: everything in level n is owned only by objects
// of levels before n (or by members of its own cycle). Inside a level sorted by ID.
type Levels [][]graph.ID

// Cycle is a set of objects that own each other, sorted by ID.
type Cycle []graph.ID

// Len is the number of objects in all levels.
func (l Levels) Len() int {
	n := 0
	for _, level := range l {
		n += len(level)
	}
	return n
}

// Reverse gives the levels for removal: dependents first. The receiver is not changed.
func (l Levels) Reverse() Levels {
	out := slices.Clone(l)
	slices.Reverse(out)
	return out
}

// Of puts ids into levels, owners before dependents, in O(objects + edges).
// Owners that are not among ids are ignored: they are already in place.
// Members of a cycle share one level and are reported. Every distinct input ID
// is in exactly one level: l.Len() equals their number.
func Of(ids iter.Seq[graph.ID], owners func(graph.ID) []graph.ID) (Levels, []Cycle) {
	var nodes []graph.ID
	index := map[graph.ID]int{}
	for id := range ids {
		if _, ok := index[id]; !ok {
			index[id] = -1
			nodes = append(nodes, id)
		}
	}
	slices.SortFunc(nodes, graph.ID.Compare)
	for i, id := range nodes {
		index[id] = i
	}
	edges := make([][]int, len(nodes))
	for i, id := range nodes {
		for _, o := range owners(id) {
			if j, ok := index[o]; ok {
				edges[i] = append(edges[i], j)
			}
		}
	}
	comps := components(edges)
	level := make([]int, len(comps))
	of := make([]int, len(nodes))
	for c, members := range comps {
		for _, m := range members {
			of[m] = c
		}
	}
	var levels Levels
	var cycles []Cycle
	// Tarjan emits a component after everything it points to: owners come first.
	for c, members := range comps {
		self := false
		for _, m := range members {
			for _, o := range edges[m] {
				if of[o] == c {
					self = true
					continue
				}
				level[c] = max(level[c], level[of[o]]+1)
			}
		}
		for len(levels) <= level[c] {
			levels = append(levels, nil)
		}
		for _, m := range members {
			levels[level[c]] = append(levels[level[c]], nodes[m])
		}
		if self {
			cycle := make(Cycle, 0, len(members))
			for _, m := range members {
				cycle = append(cycle, nodes[m])
			}
			slices.SortFunc(cycle, graph.ID.Compare)
			cycles = append(cycles, cycle)
		}
	}
	for _, l := range levels {
		slices.SortFunc(l, graph.ID.Compare)
	}
	slices.SortFunc(cycles, func(a, b Cycle) int { return a[0].Compare(b[0]) })
	return levels, cycles
}

// components are the strongly connected components (Tarjan, without recursion:
// an owner chain may be as long as there are objects).
func components(edges [][]int) [][]int {
	const unseen = 0
	n := len(edges)
	num, low := make([]int, n), make([]int, n)
	onStack := make([]bool, n)
	next := make([]int, n)
	var stack, work []int
	var out [][]int
	count := 0
	for root := range n {
		if num[root] != unseen {
			continue
		}
		work = append(work, root)
		for len(work) > 0 {
			v := work[len(work)-1]
			if num[v] == unseen {
				count++
				num[v], low[v] = count, count
				stack = append(stack, v)
				onStack[v] = true
			}
			if next[v] < len(edges[v]) {
				w := edges[v][next[v]]
				next[v]++
				if num[w] == unseen {
					work = append(work, w)
				} else if onStack[w] {
					low[v] = min(low[v], num[w])
				}
				continue
			}
			work = work[:len(work)-1]
			if len(work) > 0 {
				p := work[len(work)-1]
				low[p] = min(low[p], low[v])
			}
			if low[v] != num[v] {
				continue
			}
			var comp []int
			for {
				w := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				onStack[w] = false
				comp = append(comp, w)
				if w == v {
					break
				}
			}
			out = append(out, comp)
		}
	}
	return out
}
