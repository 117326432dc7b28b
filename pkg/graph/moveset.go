package graph

import (
	"fmt"
	"slices"
	"strings"
)

// MoveReason says why clusterctl takes an object along, or does not.
type MoveReason string

const (
	// InHierarchy: a root, that is a Cluster, ClusterClass, ClusterResourceSet or
	// what is labelled move-hierarchy, or owned by one. Because is the root.
	InHierarchy MoveReason = "in the hierarchy of"
	// LabelledMove: the object carries clusterctl's move label.
	LabelledMove MoveReason = "labelled for move"
	// KindMoves: its CustomResourceDefinition carries clusterctl's move label.
	KindMoves MoveReason = "its kind is labelled for move"
	// NoRoot: neither labelled nor owned by a root.
	NoRoot MoveReason = "no owner leads to a moved root"
	// OwnerOutside: clusterctl creates nothing before all its owners. Because is one that does not move.
	OwnerOutside MoveReason = "an owner stays behind"
	// OwnerUnseen: the same, and that owner was not seen at all. Because is the owner.
	OwnerUnseen MoveReason = "an owner is not among the objects that clusterctl sees"
	// OwnerStale: clusterctl knows owners by UID, so a stale one is one it cannot see. Because is the owner.
	OwnerStale MoveReason = "an owner reference has a stale UID"
	// NotDiscovered: the CustomResourceDefinition does not carry clusterctl's label.
	NotDiscovered MoveReason = "clusterctl does not discover its kind"
	// OutOfScope: its kind is discovered, but in another namespace (Builder.Scope).
	OutOfScope MoveReason = "clusterctl does not look into its namespace"
	// InCycle: it owns itself by way of others, so its owners never come first.
	InCycle MoveReason = "owners form a cycle"
	// Recorded: the graph is a Snapshot's, which knows the verdict and not all that led to it.
	Recorded MoveReason = "it was recorded so"
)

// Membership is the verdict about one object.
type Membership struct {
	ID     ID         `json:"object"`
	In     bool       `json:"in"`
	Reason MoveReason `json:"reason"`
	// Because is the root it moves with, or the owner that keeps it back; zero if neither.
	Because ID `json:"because,omitzero"`
}

// Why is the reason as a sentence's end: "an owner stays behind: Widget default/w".
func (m Membership) Why() string {
	switch {
	case m.Because.IsZero():
		return string(m.Reason)
	case m.In:
		return fmt.Sprintf("%s %s", m.Reason, m.Because)
	default:
		return fmt.Sprintf("%s: %s", m.Reason, m.Because)
	}
}

// MoveSet has one Membership for every object of the graph, sorted by ID: none
// falls out.
type MoveSet []Membership

// Of finds the verdict about one object, in O(log objects); false if it is not in the graph.
func (s MoveSet) Of(id ID) (Membership, bool) {
	i, ok := slices.BinarySearchFunc(s, id, func(m Membership, id ID) int { return m.ID.Compare(id) })
	if !ok {
		return Membership{}, false
	}
	return s[i], true
}

// In gives the identities that move, sorted.
func (s MoveSet) In() []ID {
	var out []ID
	for _, m := range s {
		if m.In {
			out = append(out, m.ID)
		}
	}
	return out
}

// MoveSet computes what `clusterctl move` would take along, in O(objects + edges).
// That of a Hierarchy is the verdict of the whole graph about its objects.
//
// clusterctl (objectgraph.go setTenants, getMoveNodes; mover.go getMoveSequence)
// takes what hangs below a root, or is labelled, and then only that whose owners
// all move. It knows owners by UID: a stale reference is an owner it cannot see.
func (g *Graph) MoveSet() MoveSet {
	if g.whole != nil {
		part := make(MoveSet, 0, len(g.objects))
		for _, m := range g.whole.MoveSet() {
			if _, ok := g.index[m.ID]; ok {
				part = append(part, m)
			}
		}
		return part
	}
	v := &mover{Graph: g, visible: g.visible(), candidate: make([]bool, len(g.objects)), set: make(MoveSet, len(g.objects))}
	for i, o := range g.objects {
		v.set[i].ID = o.ID
	}
	v.claimAll()
	v.admit()
	v.explain()
	for i := range v.set {
		if was, ok := g.recorded[v.set[i].ID]; ok && was != v.set[i].In {
			v.set[i] = Membership{ID: v.set[i].ID, In: was, Reason: Recorded}
		}
	}
	return v.set
}

// mover is one computation of a move set. Slices run along g.objects.
type mover struct {
	*Graph
	// visible: clusterctl reads the object. candidate: it wants to move it.
	visible, candidate []bool
	set                MoveSet
}

// visible follows clusterctl's Discovery (objectgraph.go): the discovered kinds in
// the namespace that moves, Secrets beside infrastructure providers, and each
// ClusterClass in another namespace that a Cluster uses, with its templates.
func (g *Graph) visible() []bool {
	out := make([]bool, len(g.objects))
	for i, o := range g.objects {
		out[i] = g.kinds[o.GroupKind()].Discovered && g.scope.includes(o)
	}
	for _, cluster := range g.byKind[Cluster] {
		class, ok := g.index[refTo(cluster, FieldClassRef)]
		if !ok || !out[g.index[cluster.ID]] || g.objects[class].Namespace == g.scope.namespace {
			continue
		}
		out[class] = true
		for _, e := range g.refs[class] {
			if i, ok := g.index[e.To]; ok && isClassTemplate(e.Field) {
				out[i] = true
			}
		}
	}
	return out
}

// includes: a list in one namespace gives all objects of a cluster-scoped kind.
func (s scope) includes(o *Object) bool {
	return s.namespace == "" || o.Namespace == "" || o.Namespace == s.namespace ||
		(o.GroupKind() == Secret && slices.Contains(s.providers, o.Namespace))
}

// isClassTemplate says that clusterctl fetches what a ClusterClass names in this
// field: its templates (templateRef, in v1beta1 ref), not those for remediation.
func isClassTemplate(field string) bool {
	return (strings.HasSuffix(field, ".templateRef") || strings.HasSuffix(field, ".ref")) &&
		!strings.Contains(field, "ealthCheck")
}

// claimAll finds the candidates (setTenants, getMoveNodes).
func (v *mover) claimAll() {
	for i, o := range v.objects {
		_, label := o.Labels[MoveHierarchyLabel]
		if v.visible[i] && (label || v.kinds[o.GroupKind()].ForceMoveHierarchy) {
			v.claim(i)
		}
	}
	for i, o := range v.objects {
		_, label := o.Labels[MoveLabel]
		if !v.visible[i] || v.candidate[i] || (!label && !v.kinds[o.GroupKind()].ForceMove) {
			continue
		}
		v.candidate[i] = true
		v.set[i].Reason = LabelledMove
		if !label {
			v.set[i].Reason = KindMoves
		}
	}
}

// claim marks everything below a root.
func (v *mover) claim(root int) {
	if v.candidate[root] {
		return // Already below an earlier root, and so is all that it owns.
	}
	queue := []int{root}
	v.candidate[root] = true
	for k := 0; k < len(queue); k++ {
		i := queue[k]
		v.set[i].Reason, v.set[i].Because = InHierarchy, v.objects[root].ID
		for _, e := range v.dependents[i] {
			if j := v.index[e.From]; e.State == Live && e.Kind != Held && v.visible[j] && !v.candidate[j] {
				v.candidate[j] = true
				queue = append(queue, j)
			}
		}
	}
}

// counts says that clusterctl waits with an object for this owner. Conventions
// hold between objects that it reads; owner references always; those that were
// taken off never.
func (v *mover) counts(e Edge) bool {
	return e.Kind == Owner || (e.Kind == Soft && v.visible[v.index[e.To]])
}

// admit takes in, owners first, each candidate whose owners are all in (getMoveSequence).
func (v *mover) admit() {
	left := make([]int, len(v.objects))
	var queue []int
	for i := range v.objects {
		for _, e := range v.owners[i] {
			if v.counts(e) {
				left[i]++
			}
		}
		if v.candidate[i] && left[i] == 0 {
			queue = append(queue, i)
		}
	}
	for k := 0; k < len(queue); k++ {
		i := queue[k]
		v.set[i].In = true
		for _, e := range v.dependents[i] {
			j := v.index[e.From]
			if e.State != Live || !v.counts(e) {
				continue
			}
			if left[j]--; left[j] == 0 && v.candidate[j] {
				queue = append(queue, j)
			}
		}
	}
}

// explain gives every object that is not in its reason: first those that are kept
// back by themselves, then what they keep back, then the cycles.
func (v *mover) explain() {
	settled := make([]bool, len(v.objects))
	var queue []int
	for i, o := range v.objects {
		m := &v.set[i]
		settled[i] = true
		away, unseen := v.unseenOwner(i)
		switch {
		case m.In:
			continue
		case !v.kinds[o.GroupKind()].Discovered && !v.visible[i]:
			m.Reason = NotDiscovered
		case !v.visible[i]:
			m.Reason = OutOfScope
		case unseen:
			m.Reason, m.Because = reasonOf(away), away.To
		case !v.candidate[i]:
			m.Reason = NoRoot
		default:
			settled[i] = false
			continue
		}
		queue = append(queue, i)
	}
	for k := 0; k < len(queue); k++ {
		for _, e := range v.dependents[queue[k]] {
			if j := v.index[e.From]; !settled[j] && v.counts(e) {
				settled[j] = true
				v.set[j].Reason, v.set[j].Because = OwnerOutside, e.To
				queue = append(queue, j)
			}
		}
	}
	v.explainCycles(settled)
}

// explainCycles parts what is left into members of cycles and what hangs below
// them, by taking away, again and again, what owns nothing that is left.
func (v *mover) explainCycles(settled []bool) {
	owned := make([]int, len(v.objects))
	each := func(i int, visit func(e Edge, owner int)) {
		for _, e := range v.owners[i] {
			if j, ok := v.index[e.To]; ok && !v.set[j].In && v.counts(e) {
				visit(e, j)
			}
		}
	}
	var queue []int
	for i := range v.objects {
		if !settled[i] {
			v.set[i].Reason, v.set[i].Because = InCycle, ID{}
			each(i, func(_ Edge, owner int) { owned[owner]++ })
		}
	}
	for i := range v.objects {
		if !settled[i] && owned[i] == 0 {
			queue = append(queue, i)
		}
	}
	for k := 0; k < len(queue); k++ {
		i := queue[k]
		v.set[i].Reason = OwnerOutside
		each(i, func(e Edge, owner int) {
			if v.set[i].Because.IsZero() {
				v.set[i].Because = e.To
			}
			if owned[owner]--; owned[owner] == 0 {
				queue = append(queue, owner)
			}
		})
	}
}

func (v *mover) unseenOwner(i int) (Edge, bool) {
	for _, e := range v.owners[i] {
		if e.State != Live && e.Kind != Held {
			return e, true
		}
	}
	return Edge{}, false
}

func reasonOf(e Edge) MoveReason {
	if e.State == Stale {
		return OwnerStale
	}
	return OwnerUnseen
}
