package report

import (
	"slices"

	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

// GraphDocument is the JSON and YAML form of an ownership graph, and what the
// tree and the table are printed from. Field names are stable; lists are sorted
// by identity and never null.
type GraphDocument struct {
	Objects []GraphObject `json:"objects"`
	// Unseen are the owners that were named and not seen.
	Unseen []GraphUnseen `json:"unseen"`
	Counts GraphCounts   `json:"counts"`
}

// GraphCounts are the sizes of a GraphDocument.
type GraphCounts struct {
	Clusters int `json:"clusters"`
	Objects  int `json:"objects"`
	Moving   int `json:"moving"`
	Staying  int `json:"staying"`
	// Unrelated is how many of the staying are Secrets and ConfigMaps that nothing
	// here owns, names or refers to.
	Unrelated int `json:"unrelated"`
}

// GraphObject is one object of the graph.
type GraphObject struct {
	graph.ID
	APIVersion string       `json:"apiVersion"`
	UID        string       `json:"uid,omitempty"`
	Owners     []GraphOwner `json:"owners"`
	Refs       []GraphRef   `json:"refs"`
	// Marks are "paused", "held", "pending" and "deleting", where they apply.
	Marks []string    `json:"marks"`
	Facts graph.Facts `json:"facts,omitzero"`
	// Moves says that clusterctl move takes it along, and Reason why (not).
	Moves  bool   `json:"moves"`
	Reason string `json:"reason"`
	// Unrelated: a Secret or ConfigMap that nothing here owns, names or refers to.
	Unrelated bool `json:"unrelated,omitempty"`
}

// GraphOwner is one owner of an object.
type GraphOwner struct {
	graph.ID
	// Edge is "controller", "owner", or "soft" for clusterctl's ownership by convention.
	Edge string `json:"edge"`
	// State is "live", "stale" (there, with another UID), "dangling" (not there) or
	// "unknown" (its kind could not be listed).
	State      string `json:"state"`
	APIVersion string `json:"apiVersion,omitempty"`
	UID        string `json:"uid,omitempty"`
}

// GraphRef is one reference that an object's spec makes.
type GraphRef struct {
	Field string   `json:"field"`
	To    graph.ID `json:"to"`
	State string   `json:"state"`
}

// GraphUnseen is an owner that was named and not seen.
type GraphUnseen struct {
	graph.ID
	State string `json:"state"`
	// NamedBy are the objects whose owner it would be.
	NamedBy []graph.ID `json:"namedBy"`
}

// NewGraphDocument describes the objects of g that are in only, or all of them
// if only is nil. What moves is judged over the whole graph either way.
func NewGraphDocument(g *graph.Graph, only []graph.ID) GraphDocument {
	set := g.MoveSet()
	doc := GraphDocument{Objects: make([]GraphObject, 0, len(set)), Unseen: []GraphUnseen{}}
	wanted := make(map[graph.ID]bool, len(only))
	for _, id := range only {
		wanted[id] = true
	}
	for _, m := range set {
		if only != nil && !wanted[m.ID] {
			continue
		}
		o, _ := g.Object(m.ID)
		out := describe(g, o)
		out.Moves, out.Reason = m.In, m.Why()
		out.Unrelated = !m.In && unrelated(g, o)
		doc.Objects = append(doc.Objects, out)
		doc.count(out)
	}
	for _, id := range g.Unseen() {
		if u := unseen(g, id, func(by graph.ID) bool { return only == nil || wanted[by] }); len(u.NamedBy) > 0 {
			doc.Unseen = append(doc.Unseen, u)
		}
	}
	return doc
}

func (d *GraphDocument) count(o GraphObject) {
	d.Counts.Objects++
	if o.GroupKind() == graph.Cluster {
		d.Counts.Clusters++
	}
	switch {
	case o.Moves:
		d.Counts.Moving++
	case o.Unrelated:
		d.Counts.Unrelated++
		fallthrough
	default:
		d.Counts.Staying++
	}
}

func describe(g *graph.Graph, o *graph.Object) GraphObject {
	out := GraphObject{ID: o.ID, APIVersion: o.APIVersion, UID: string(o.UID), Facts: o.Facts,
		Owners: []GraphOwner{}, Refs: []GraphRef{}, Marks: marks(o)}
	for _, e := range g.Owners(o.ID) {
		out.Owners = append(out.Owners, GraphOwner{ID: e.To, Edge: edgeName(e), State: e.State.String(),
			APIVersion: e.Owner.APIVersion, UID: string(e.Owner.UID)})
	}
	for _, e := range g.SpecRefs(o.ID) {
		out.Refs = append(out.Refs, GraphRef{Field: e.Field, To: e.To, State: e.State.String()})
	}
	return out
}

func edgeName(e graph.Edge) string {
	if e.Kind == graph.Owner && e.Controller() {
		return "controller"
	}
	return e.Kind.String()
}

func marks(o *graph.Object) []string {
	out := []string{}
	m := labels.MetaOf(o)
	if labels.PausedByUser(m) {
		out = append(out, "paused")
	}
	if labels.IsHeld(m) {
		out = append(out, "held")
	}
	if labels.IsPending(m) {
		out = append(out, "pending")
	}
	if o.Deleting {
		out = append(out, "deleting")
	}
	return out
}

// unrelated: clusterctl lists every Secret and ConfigMap of a namespace; most
// have nothing to do with any Cluster.
func unrelated(g *graph.Graph, o *graph.Object) bool {
	if gk := o.GroupKind(); gk != graph.Secret && gk != graph.ConfigMap {
		return false
	}
	return len(g.Owners(o.ID)) == 0 && !g.Referenced(o.ID) && o.Labels[graph.ClusterNameLabel] == ""
}

func unseen(g *graph.Graph, id graph.ID, wanted func(graph.ID) bool) GraphUnseen {
	u := GraphUnseen{ID: id, NamedBy: []graph.ID{}}
	for _, e := range g.Dependents(id) {
		if wanted(e.From) {
			u.NamedBy = append(u.NamedBy, e.From)
			u.State = e.State.String()
		}
	}
	u.NamedBy = slices.Compact(u.NamedBy)
	return u
}
