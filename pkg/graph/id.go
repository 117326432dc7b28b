package graph

import (
	"cmp"
	"strings"
)

// GroupKind names a kind without a version: versions differ between management clusters.
type GroupKind struct {
	Group string `json:"group,omitempty"`
	Kind  string `json:"kind"`
}

// ID is the identity of an object that survives a move: never a UID (it belongs
// to one copy), never a version (both sides may serve different ones).
// The zero ID names nothing. IDs are comparable and may be map keys.
type ID struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// GroupKind is the identity's kind.
func (i ID) GroupKind() GroupKind { return GroupKind{Group: i.Group, Kind: i.Kind} }

// IsZero says that the ID names nothing.
func (i ID) IsZero() bool { return i == ID{} }

// Compare orders by group, kind, namespace, name.
func (i ID) Compare(o ID) int {
	// Not cmp.Or: it would compare all four each time, and sorting is most of Build.
	if c := strings.Compare(i.Group, o.Group); c != 0 {
		return c
	}
	if c := strings.Compare(i.Kind, o.Kind); c != 0 {
		return c
	}
	if c := strings.Compare(i.Namespace, o.Namespace); c != 0 {
		return c
	}
	return strings.Compare(i.Name, o.Name)
}

// String is "Machine default/cp-0", or "ClusterIdentity name" for a cluster-scoped object.
func (i ID) String() string {
	if i.Namespace == "" {
		return i.Kind + " " + i.Name
	}
	return i.Kind + " " + i.Namespace + "/" + i.Name
}

// Compare orders by group and kind.
func (g GroupKind) Compare(o GroupKind) int {
	return cmp.Or(strings.Compare(g.Group, o.Group), strings.Compare(g.Kind, o.Kind))
}

// String is "Kind.group", or "Kind" for the core group.
func (g GroupKind) String() string {
	if g.Group == "" {
		return g.Kind
	}
	return g.Kind + "." + g.Group
}

// GroupOf is the group of an apiVersion: "" for "v1".
func GroupOf(apiVersion string) string {
	group, _, ok := strings.Cut(apiVersion, "/")
	if !ok {
		return ""
	}
	return group
}
