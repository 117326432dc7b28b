package graph

import "fmt"

// MoveReason says why clusterctl takes an object along, or does not.
type MoveReason string

const (
	InHierarchy   MoveReason = "in the hierarchy of"
	LabelledMove  MoveReason = "labelled for move"
	KindMoves     MoveReason = "its kind is labelled for move"
	NoRoot        MoveReason = "no owner leads to a moved root"
	OwnerOutside  MoveReason = "an owner stays behind"
	OwnerUnseen   MoveReason = "an owner is not among the objects that clusterctl sees"
	OwnerStale    MoveReason = "an owner reference has a stale UID"
	NotDiscovered MoveReason = "clusterctl does not discover its kind"
	InCycle       MoveReason = "owners form a cycle"
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

// MoveSet has one Membership for every object of the graph, sorted by ID.
type MoveSet []Membership

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
//
// clusterctl (objectgraph.go setTenants, getMoveNodes; mover.go getMoveSequence)
// takes what hangs below a root, or is labelled, and then only that whose owners
// all move. It knows owners by UID: a stale reference is an owner it cannot see.
func (g *Graph) MoveSet() MoveSet {
	n := len(g.objects)
	set := make(MoveSet, n)
	candidate := make([]bool, n)
	visible := make([]bool, n)
	for i, o := range g.objects {
		set[i].ID = o.ID
		visible[i] = g.kinds[o.GroupKind()].Discovered
	}
	for i, o := range g.objects {
		info := g.kinds[o.GroupKind()]
		_, hierarchy := o.Labels[MoveHierarchyLabel]
		if visible[i] && (hierarchy || info.ForceMoveHierarchy) {
			g.claim(i, visible, candidate, set)
		}
	}
	for i, o := range g.objects {
		info := g.kinds[o.GroupKind()]
		_, label := o.Labels[MoveLabel]
		if !visible[i] || candidate[i] || (!label && !info.ForceMove) {
			continue
		}
		candidate[i] = true
		set[i].Reason = LabelledMove
		if !label {
			set[i].Reason = KindMoves
		}
	}
	g.settle(visible, candidate, set)
	return set
}

// claim marks everything below a root.
func (g *Graph) claim(root int, visible, candidate []bool, set MoveSet) {
	if candidate[root] {
		return // already below an earlier root, and so is all that it owns
	}
	queue := []int{root}
	candidate[root] = true
	for k := 0; k < len(queue); k++ {
		i := queue[k]
		set[i].Reason, set[i].Because = InHierarchy, g.objects[root].ID
		for _, e := range g.dependents[i] {
			if j := g.index[e.From]; e.State == Live && visible[j] && !candidate[j] {
				candidate[j] = true
				queue = append(queue, j)
			}
		}
	}
}

// settle takes in, owners first, each candidate whose owners are all in, and
// gives every other object its reason.
func (g *Graph) settle(visible, candidate []bool, set MoveSet) {
	n := len(g.objects)
	left := make([]int, n)
	var queue []int
	for i := range n {
		left[i] = len(g.owners[i])
		if candidate[i] && left[i] == 0 {
			queue = append(queue, i)
		}
	}
	for k := 0; k < len(queue); k++ {
		i := queue[k]
		set[i].In = true
		for _, e := range g.dependents[i] {
			if e.State != Live {
				continue
			}
			j := g.index[e.From]
			if left[j]--; left[j] == 0 && candidate[j] {
				queue = append(queue, j)
			}
		}
	}
	// What is left: first those that are kept back by themselves, then what they keep back.
	queue = queue[:0]
	out := func(i int, r MoveReason, because ID) {
		set[i].Reason, set[i].Because = r, because
		queue = append(queue, i)
	}
	settled := make([]bool, n)
	for i := range n {
		settled[i] = true
		switch {
		case set[i].In:
		case !visible[i]:
			out(i, NotDiscovered, ID{})
		case !candidate[i]:
			out(i, NoRoot, ID{})
			if e, ok := g.unseenOwner(i); ok {
				set[i].Reason, set[i].Because = reasonOf(e), e.To
			}
		default:
			if e, ok := g.unseenOwner(i); ok {
				out(i, reasonOf(e), e.To)
			} else {
				settled[i] = false
			}
		}
	}
	for k := 0; k < len(queue); k++ {
		for _, e := range g.dependents[queue[k]] {
			if j := g.index[e.From]; !settled[j] {
				settled[j] = true
				out(j, OwnerOutside, e.To)
			}
		}
	}
	for i := range n {
		if !settled[i] {
			set[i].Reason, set[i].Because = InCycle, ID{}
		}
	}
}

func (g *Graph) unseenOwner(i int) (Edge, bool) {
	for _, e := range g.owners[i] {
		if e.State != Live {
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
