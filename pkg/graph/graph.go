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
	// Held is an owner reference that an armed target took off (OwnersAnnotation):
	// it tells what belongs together, and clusterctl does not know it.
	Held
)

// String is "owner", "soft", "spec" or "held".
func (k EdgeKind) String() string { return [...]string{"owner", "soft", "spec", "held"}[k] }

// Edge points from a dependent (or referrer) to its owner (or what it refers to).
type Edge struct {
	From, To ID
	Kind     EdgeKind
	// Owner is the reference itself, for Kind Owner; without UID for Kind Held.
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
	missing    map[ID][]Edge // spec edges to what was not seen
	scope      scope
	recorded   map[ID]bool // of a Snapshot: what moved
	whole      *Graph      // of a Hierarchy: the graph that it is a part of
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
	return len(g.unseen[id]) > 0 || len(g.missing[id]) > 0
}

// Owners are an object's owner, soft and held edges, owner references first and in
// the object's own order. The slice must not be changed.
func (g *Graph) Owners(id ID) []Edge { return g.edges(g.owners, id) }

// Dependents are the owner, soft and held edges that point to an object, sorted by
// dependent, also where the owner itself was not seen.
func (g *Graph) Dependents(id ID) []Edge {
	if _, ok := g.index[id]; !ok {
		return g.unseen[id]
	}
	return g.edges(g.dependents, id)
}

// SpecRefs are the references that an object's spec makes, sorted by field. The
// slice must not be changed.
func (g *Graph) SpecRefs(id ID) []Edge { return g.edges(g.refs, id) }

// Referrers are the spec references that point to an object, sorted by referrer,
// also where the object itself was not seen. The slice must not be changed.
func (g *Graph) Referrers(id ID) []Edge {
	if _, ok := g.index[id]; !ok {
		return g.missing[id]
	}
	return g.edges(g.referrers, id)
}

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

// Unseen gives the owners that were named and not seen, sorted. Dependents says by whom.
func (g *Graph) Unseen() []ID {
	return slices.SortedFunc(maps.Keys(g.unseen), ID.Compare)
}
