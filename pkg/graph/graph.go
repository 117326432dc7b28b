package graph

import (
	"iter"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RefState is what is known of the object that a reference names.
type RefState int

const (
	// Live: the object is there (with this UID, for an owner reference).
	Live RefState = iota
	// Stale: an object of this identity is there and has another UID.
	Stale
	// Dangling: its kind was listed completely and it is not there.
	Dangling
	// Unknown: its kind was not listed, so nobody can say.
	Unknown
)

// String is "live", "stale", "dangling" or "unknown".
func (s RefState) String() string {
	return [...]string{"live", "stale", "dangling", "unknown"}[s]
}

// EdgeKind is the kind of a relation between two objects.
type EdgeKind int

const (
	// Owner is an owner reference.
	Owner EdgeKind = iota
	// Soft is ownership by clusterctl's conventions.
	Soft
	// Spec is a reference in a spec.
	Spec
)

// String is "owner", "soft" or "spec".
func (k EdgeKind) String() string { return [...]string{"owner", "soft", "spec"}[k] }

// Edge points from a dependent (or referrer) to its owner (or what it refers to).
type Edge struct {
	From, To ID
	Kind     EdgeKind
	// Owner is the reference itself, for Kind Owner.
	Owner metav1.OwnerReference
	// Field is the path of the reference, for Kind Spec.
	Field string
	State RefState
}

// Controller says that this is the managing owner.
func (e Edge) Controller() bool { return e.Owner.Controller != nil && *e.Owner.Controller }

// Graph is immutable and safe for concurrent readers.
type Graph struct {
	objects    []*Object
	index      map[ID]int
	kinds      map[GroupKind]KindInfo
	listed     map[listKey]struct{}
	byKind     map[GroupKind][]*Object
	byLabel    map[ID][]int // the Cluster that the cluster-name label names
	owners     [][]Edge
	dependents [][]Edge
	refs       [][]Edge
	referrers  [][]Edge
	unseen     map[ID][]Edge // owner edges to what was not seen
}

// Len is the number of objects that were seen.
func (g *Graph) Len() int { return len(g.objects) }

// Object finds an object; false means not seen, see Referenced.
func (g *Graph) Object(id ID) (*Object, bool) {
	i, ok := g.index[id]
	if !ok {
		return nil, false
	}
	return g.objects[i], true
}

// All gives every object, sorted by ID.
func (g *Graph) All() iter.Seq[*Object] { return slices.Values(g.objects) }

// OfKind gives the objects of one kind, sorted. The slice must not be changed.
func (g *Graph) OfKind(gk GroupKind) []*Object { return g.byKind[gk] }

// Labelled gives the objects whose cluster-name label names this Cluster, in its namespace, sorted.
func (g *Graph) Labelled(cluster ID) []*Object {
	out := make([]*Object, 0, len(g.byLabel[cluster]))
	for _, i := range g.byLabel[cluster] {
		out = append(out, g.objects[i])
	}
	return out
}

// KindInfo is what discovery told about a kind.
func (g *Graph) KindInfo(gk GroupKind) (KindInfo, bool) {
	k, ok := g.kinds[gk]
	return k, ok
}

// Kinds gives all known kinds, sorted.
func (g *Graph) Kinds() []KindInfo {
	return slices.SortedFunc(maps.Values(g.kinds), func(a, b KindInfo) int { return a.Compare(b.GroupKind) })
}

// Listed says that all objects of the kind in the namespace were seen.
func (g *Graph) Listed(gk GroupKind, namespace string) bool {
	if _, ok := g.listed[listKey{gk, namespace}]; ok {
		return true
	}
	_, ok := g.listed[listKey{gk, ""}]
	return ok
}

// Referenced says that some object names this one as its owner or in its spec.
func (g *Graph) Referenced(id ID) bool {
	if i, ok := g.index[id]; ok {
		return len(g.dependents[i]) > 0 || len(g.referrers[i]) > 0
	}
	return len(g.unseen[id]) > 0
}

// Owners are an object's owner and soft edges, owner references first and in
// the object's own order. The slice must not be changed.
func (g *Graph) Owners(id ID) []Edge { return g.edges(g.owners, id) }

// Dependents are the owner and soft edges that point to an object, sorted by
// dependent, also where the owner itself was not seen.
func (g *Graph) Dependents(id ID) []Edge {
	if _, ok := g.index[id]; !ok {
		return g.unseen[id]
	}
	return g.edges(g.dependents, id)
}

// SpecRefs are the references that an object's spec makes.
func (g *Graph) SpecRefs(id ID) []Edge { return g.edges(g.refs, id) }

// Referrers are the spec references that point to an object, sorted by referrer.
func (g *Graph) Referrers(id ID) []Edge { return g.edges(g.referrers, id) }

func (g *Graph) edges(of [][]Edge, id ID) []Edge {
	i, ok := g.index[id]
	if !ok {
		return nil
	}
	return of[i]
}

// Controller is the edge to the managing owner; false without one.
func (g *Graph) Controller(id ID) (Edge, bool) {
	for _, e := range g.Owners(id) {
		if e.Kind == Owner && e.Controller() {
			return e, true
		}
	}
	return Edge{}, false
}

// Unseen gives the owners that were named and not seen, sorted.
func (g *Graph) Unseen() []ID {
	return slices.SortedFunc(maps.Keys(g.unseen), ID.Compare)
}

// Hierarchy is the part of the graph that root owns, directly or not, by
// identity: a stale UID does not break the chain. Cycles are survived.
func (g *Graph) Hierarchy(root ID) *Graph {
	return g.subgraph(g.reach(root, func(i int, visit func(ID)) {
		for _, e := range g.dependents[i] {
			visit(e.From)
		}
	}))
}

// Belongs gives everything that belongs to a Cluster, sorted by ID, the Cluster
// first among equals: what it owns, what is labelled or says (spec.clusterName)
// that it is the Cluster's, what those refer to, and the owners of all of them.
// Owner references may all be missing, as after a restore. Other Clusters never
// belong, nor what only they own.
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
		was, seen := core[i]
		if seen && (was || !isCore) {
			return
		}
		core[i] = isCore
		order = append(order, i)
	}
	add(cluster, true)
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
			// What a member refers to beside it is the Cluster's too, with all that it
			// owns; a ClusterClass and things in other namespaces are shared.
			add(e.To, core[i] && e.To.Namespace == cluster.Namespace && e.To.GroupKind() != ClusterClass)
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

func (g *Graph) reach(root ID, next func(int, func(ID))) []int {
	i, ok := g.index[root]
	if !ok {
		return nil
	}
	seen := map[int]bool{i: true}
	queue := []int{i}
	for n := 0; n < len(queue); n++ {
		next(queue[n], func(id ID) {
			if j, ok := g.index[id]; ok && !seen[j] {
				seen[j] = true
				queue = append(queue, j)
			}
		})
	}
	return queue
}

func (g *Graph) subgraph(members []int) *Graph {
	b := Builder{kinds: g.kinds, listed: g.listed}
	for _, i := range members {
		b.Add(*g.objects[i])
	}
	// Members come from a graph that was built, so neither error of Build can occur.
	sub, err := b.Build()
	if err != nil {
		return &Graph{}
	}
	return sub
}
