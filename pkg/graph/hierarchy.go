package graph

import "slices"

// Hierarchy is the part of the graph that root owns, directly or not, by
// identity: a stale UID does not break the chain, a root that was not seen has
// dependents all the same, cycles are survived. Every object in it is as in the
// whole graph: its edges with their states, also those that lead out of the
// Hierarchy, and its place in the move set.
func (g *Graph) Hierarchy(root ID) *Graph {
	member := map[int]bool{}
	var queue []int
	visit := func(edges []Edge) {
		for _, e := range edges {
			if i := g.index[e.From]; !member[i] {
				member[i] = true
				queue = append(queue, i)
			}
		}
	}
	if i, ok := g.index[root]; ok {
		member[i] = true
		queue = append(queue, i)
	} else {
		visit(g.unseen[root])
	}
	for n := 0; n < len(queue); n++ {
		visit(g.dependents[queue[n]])
	}
	slices.Sort(queue)
	return g.part(queue)
}

// part is the graph of some of the objects, given by ascending index.
func (g *Graph) part(members []int) *Graph {
	whole := g
	if g.whole != nil {
		whole = g.whole
	}
	p := &Graph{objects: make([]*Object, 0, len(members)), kinds: g.kinds, listed: g.listed, scope: g.scope, whole: whole}
	for _, i := range members {
		p.objects = append(p.objects, g.objects[i])
	}
	p.arrange()
	for at, i := range members {
		p.owners[at], p.refs[at] = g.owners[i], g.refs[i]
		for _, e := range g.owners[i] {
			if j, ok := p.index[e.To]; ok {
				p.dependents[j] = append(p.dependents[j], e)
			} else if _, seen := whole.index[e.To]; !seen {
				p.unseen[e.To] = append(p.unseen[e.To], e)
			}
		}
		for _, e := range g.refs[i] {
			if j, ok := p.index[e.To]; ok {
				p.referrers[j] = append(p.referrers[j], e)
			} else if _, seen := whole.index[e.To]; !seen {
				p.missing[e.To] = append(p.missing[e.To], e)
			}
		}
	}
	return p
}

// Belongs gives everything that belongs to a Cluster, sorted by ID: what it owns,
// what is labelled or says (spec.clusterName) that it is the Cluster's, what those
// refer to, and the owners of all of them. Owner references may all be missing, as
// after a restore (those that an armed target took off count as if they were there),
// and so may the Cluster itself. Other Clusters never belong, nor
// what only they own.
func (g *Graph) Belongs(cluster ID) []ID {
	// What a core member owns belongs; of the shared ones only references and owners do:
	// a ClusterClass softly owns other Clusters, a ClusterResourceSet their bindings.
	core := map[int]bool{}
	var order []int
	add := func(id ID, isCore bool) {
		i, ok := g.index[id]
		if !ok || (id != cluster && id.GroupKind() == Cluster) {
			return
		}
		isCore = isCore && !shared(id, cluster)
		was, seen := core[i]
		if seen && (was || !isCore) {
			return
		}
		core[i] = isCore
		order = append(order, i)
	}
	add(cluster, true)
	for _, e := range g.Dependents(cluster) {
		add(e.From, true)
	}
	for _, i := range g.byLabel[cluster] {
		add(g.objects[i].ID, true)
	}
	for _, e := range g.Referrers(cluster) {
		if e.Field == FieldClusterName {
			add(e.From, true)
		}
	}
	for n := 0; n < len(order); n++ {
		i := order[n]
		if core[i] {
			for _, e := range g.dependents[i] {
				add(e.From, true)
			}
		}
		for _, e := range g.refs[i] {
			add(e.To, core[i])
		}
		for _, e := range g.owners[i] {
			add(e.To, false)
		}
	}
	out := make([]ID, 0, len(core))
	for i := range core {
		out = append(out, g.objects[i].ID)
	}
	slices.SortFunc(out, ID.Compare)
	return out
}

// shared says that an object may serve several Clusters, so that what it owns is
// not one Cluster's.
func shared(id, cluster ID) bool {
	gk := id.GroupKind()
	return gk == ClusterClass || gk == ClusterResourceSet || id.Namespace != cluster.Namespace
}
