package graph

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Builder collects objects and what is known of their kinds. It is not safe for
// concurrent use. The zero Builder is ready.
type Builder struct {
	objects map[ID]*Object
	kinds   map[GroupKind]KindInfo
	listed  map[listKey]struct{}
	scope   scope
	err     error
}

type listKey struct {
	GroupKind
	namespace string
}

// scope is where clusterctl would look.
type scope struct {
	namespace string
	providers []string
}

// Add adds one object; a later Add of the same ID replaces the earlier. Two
// different UIDs under one ID make Build fail: the caller mixed two copies.
func (b *Builder) Add(o Object) {
	if b.objects == nil {
		b.objects = map[ID]*Object{}
	}
	if old, ok := b.objects[o.ID]; ok && old.UID != "" && o.UID != "" && old.UID != o.UID && b.err == nil {
		b.err = fmt.Errorf("%s was read with two UIDs, %s and %s: read the management cluster again", o.ID, old.UID, o.UID)
	}
	b.objects[o.ID] = &o
}

// Kind tells what discovery knows of a kind.
func (b *Builder) Kind(k KindInfo) {
	if b.kinds == nil {
		b.kinds = map[GroupKind]KindInfo{}
	}
	b.kinds[k.GroupKind] = k
}

// Listed says that every object of this kind in namespace ("" means all, or a
// cluster-scoped kind) was added: the only licence to call a missing one absent.
func (b *Builder) Listed(gk GroupKind, namespace string) {
	if b.listed == nil {
		b.listed = map[listKey]struct{}{}
	}
	b.listed[listKey{gk, namespace}] = struct{}{}
}

// Scope says which namespace `clusterctl move` would be given ("" is all, as
// without Scope) and in which namespaces infrastructure providers run: of those
// clusterctl reads the Secrets too. It decides MoveSet only: objects that were
// added beyond the scope, because something refers to them, are in the graph and
// stay behind.
func (b *Builder) Scope(namespace string, providerNamespaces ...string) {
	b.scope = scope{namespace: namespace, providers: slices.Clone(providerNamespaces)}
}

// Build makes the graph in O(objects + edges), apart from sorting. The Builder
// may be used further; the graph does not change any more.
func (b *Builder) Build() (*Graph, error) {
	if b.err != nil {
		return nil, b.err
	}
	g := &Graph{
		objects: slices.SortedFunc(maps.Values(b.objects), func(a, b *Object) int { return a.ID.Compare(b.ID) }),
		kinds:   maps.Clone(b.kinds),
		listed:  maps.Clone(b.listed),
		scope:   b.scope,
	}
	for _, o := range g.objects {
		if o.Kind == "" || o.Name == "" {
			return nil, fmt.Errorf("an object without kind or name was added: %q", o.ID.String())
		}
	}
	g.arrange()
	for i, o := range g.objects {
		if n := len(o.Owners); n > 0 {
			g.owners[i] = make([]Edge, 0, n)
		}
		for _, ref := range o.Owners {
			g.link(i, g.ownerEdge(o, ref))
		}
		if e, ok := g.softEdge(o); ok {
			g.link(i, e)
		}
		for _, ref := range o.NamedOwners()[len(o.Owners):] {
			to := g.OwnerID(o.Namespace, ref)
			g.link(i, Edge{From: o.ID, To: to, Kind: Held, Owner: ref, State: g.seen(to)})
		}
		if n := len(o.Refs); n > 0 {
			g.refs[i] = make([]Edge, 0, n)
		}
		for _, ref := range o.Refs {
			to := g.resolve(ref.To)
			g.refer(i, Edge{From: o.ID, To: to, Kind: Spec, Field: ref.Field, State: g.seen(to)})
		}
	}
	return g, nil
}

// arrange makes the indexes of g.objects, which are sorted, and room for edges.
func (g *Graph) arrange() {
	n := len(g.objects)
	g.index = make(map[ID]int, n)
	g.byKind, g.byLabel = map[GroupKind][]*Object{}, map[ID][]int{}
	for i, o := range g.objects {
		g.index[o.ID] = i
		g.byKind[o.GroupKind()] = append(g.byKind[o.GroupKind()], o)
		if name, ok := o.Labels[ClusterNameLabel]; ok {
			c := ID{Cluster.Group, Cluster.Kind, o.Namespace, name}
			g.byLabel[c] = append(g.byLabel[c], i)
		}
	}
	g.owners, g.dependents = make([][]Edge, n), make([][]Edge, n)
	g.refs, g.referrers = make([][]Edge, n), make([][]Edge, n)
	g.unseen, g.missing = map[ID][]Edge{}, map[ID][]Edge{}
}

func (g *Graph) link(i int, e Edge) {
	g.owners[i] = append(g.owners[i], e)
	if j, ok := g.index[e.To]; ok {
		g.dependents[j] = append(g.dependents[j], e)
		return
	}
	g.unseen[e.To] = append(g.unseen[e.To], e)
}

func (g *Graph) refer(i int, e Edge) {
	g.refs[i] = append(g.refs[i], e)
	if j, ok := g.index[e.To]; ok {
		g.referrers[j] = append(g.referrers[j], e)
		return
	}
	g.missing[e.To] = append(g.missing[e.To], e)
}

// ownerEdge resolves an owner reference, which has no namespace.
func (g *Graph) ownerEdge(o *Object, ref metav1.OwnerReference) Edge {
	to := g.OwnerID(o.Namespace, ref)
	e := Edge{From: o.ID, To: to, Kind: Owner, Owner: ref, State: g.seen(to)}
	if j, ok := g.index[to]; ok {
		// An owner without a UID was read from a folder or a record: there is only one copy.
		if uid := g.objects[j].UID; uid != "" && uid != ref.UID {
			e.State = Stale
		}
	}
	return e
}

// OwnerID is the identity that an owner reference of an object in namespace
// names: in the same namespace, or without one where the kind is cluster-scoped.
// Of an unknown kind, whichever was seen counts, the namespaced one first.
func (g *Graph) OwnerID(namespace string, ref metav1.OwnerReference) ID {
	if g.whole != nil {
		g = g.whole
	}
	return g.resolve(ID{GroupOf(ref.APIVersion), ref.Kind, namespace, ref.Name})
}

// resolve takes the namespace off the identity of a cluster-scoped object: a
// reference does not tell the scope of what it names.
func (g *Graph) resolve(id ID) ID {
	global := id
	global.Namespace = ""
	if info, ok := g.kinds[id.GroupKind()]; ok {
		if info.Namespaced {
			return id
		}
		return global
	}
	if _, ok := g.index[id]; ok {
		return id
	}
	if _, ok := g.index[global]; ok {
		return global
	}
	return id
}

func (g *Graph) seen(id ID) RefState {
	if _, ok := g.index[id]; ok {
		return Live
	}
	if g.Listed(id.GroupKind(), id.Namespace) {
		return Dangling
	}
	return Unknown
}
