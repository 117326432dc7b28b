package adopt

import (
	"fmt"
	"slices"
	"strings"

	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

const arrivedWith Reason = "arrived with it"

// expectHeld is what the owners annotation says: an armed target took the owner
// references off on arrival, so that no garbage collector judges by UIDs of another
// management cluster. False without the annotation.
func (v *view) expectHeld(o *graph.Object) (expectation, bool) {
	held, err := o.HeldOwners()
	switch {
	case err != nil:
		// The rules only count what belongs to what; nothing is written by them.
		x := v.rule(o)
		x.covered, x.unreadable = true, err
		return x, true
	case len(held) == 0:
		return expectation{}, false
	}
	x := expectation{covered: true, sure: true}
	for _, ref := range held {
		id := v.Graph.OwnerID(o.Namespace, ref)
		x.wants = append(x.wants, want{
			ID: id, apiVersion: ref.APIVersion, controller: ref.Controller, block: ref.BlockOwnerDeletion,
			why: arrivedWith, may: v.othersMatter(o, id),
		})
	}
	return x, true
}

// othersMatter: an owner that is not there and is a neighbour's matter is not
// awaited, so that no Cluster waits for another. The annotation then stays for
// the neighbour's adoption.
func (v *view) othersMatter(o *graph.Object, owner graph.ID) bool {
	if _, exists := v.Graph.Object(owner); exists || !v.Graph.Listed(owner.GroupKind(), owner.Namespace) {
		return false
	}
	return (owner.GroupKind() == graph.Cluster && owner != v.Cluster) || v.neighbours(o)
}

// neighbours says that an object is by its own word another Cluster's.
func (v *view) neighbours(o *graph.Object) bool {
	if name, ok := o.Labels[graph.ClusterNameLabel]; ok {
		return o.Namespace != v.Cluster.Namespace || name != v.Cluster.Name
	}
	to, ok := o.RefTo(graph.FieldClusterName)
	return ok && to != v.Cluster
}

// ownersHeld are the members that carry the owners annotation and give it up
// with this Cluster's adoption, sorted.
func (v *view) ownersHeld() []*graph.Object {
	var out []*graph.Object
	for _, o := range v.members {
		if labels.OwnersHeld(labels.MetaOf(o)) && v.givesUp(o) {
			out = append(out, o)
		}
	}
	return out
}

func (v *view) givesUp(o *graph.Object) bool {
	held, _ := o.HeldOwners() // what cannot be read is nobody else's matter
	for _, ref := range held {
		if v.othersMatter(o, v.Graph.OwnerID(o.Namespace, ref)) {
			return false
		}
	}
	return true
}

// arrived says that an own object still carries the owners annotation: a sign of a pivot.
func (v *view) arrived() bool {
	return slices.ContainsFunc(v.ownersHeld(), func(o *graph.Object) bool { return v.isOwn[o.ID] })
}

// giveBack is the step that drops the owners annotation, of objects whose owners are
// right. It comes after the release: until then the annotation is all that knows
// what no rule knows, and a process killed between two writes has to decide the same.
func (v *view) giveBack(verdicts []*verdict) Step {
	right := map[graph.ID]bool{}
	for _, d := range verdicts {
		right[d.object.ID] = !d.has(repair) && !d.has(wait) && !d.has(refuse)
	}
	var step Step
	for _, o := range v.ownersHeld() {
		if right[o.ID] {
			step = append(step, ChangeMeta{On: targetOf(o), Change: labels.DropOwners(labels.MetaOf(o)), Reason: "its owners are given back"})
		}
	}
	return step
}

// unreadable refuses an object whose owners annotation is all that would tell its owners.
func (j *judgement) unreadable() {
	j.fault(refuse, differs(idOwnersUnreadable, j.object.ID, fieldHeldOwners, heldString(j.object), "a list of owners",
		fmt.Sprintf("its owners cannot be read: %v", j.x.unreadable)), "")
}

// heldString are the owners that were taken off, or what of the annotation cannot be read.
func heldString(o *graph.Object) string {
	held, err := o.HeldOwners()
	if err != nil {
		const most = 100
		value := o.Annotations[labels.Owners]
		return strings.ToValidUTF8(value[:min(most, len(value))], "")
	}
	parts := make([]string, len(held))
	for i, ref := range held {
		parts[i] = strings.TrimSuffix(ownerString(ref), `@""`)
	}
	return strings.Join(parts, ", ")
}

const fieldHeldOwners = "metadata.annotations[" + labels.Owners + "]"

// heldLeft are the findings of verify about owners that were not given back.
func (v *view) heldLeft() []finding.Finding {
	var out []finding.Finding
	for _, o := range v.members {
		if m := labels.MetaOf(o); labels.OwnersHeld(m) && !v.neighbours(o) {
			out = append(out, differs(idOwnersHeld, o.ID, fieldHeldOwners, heldString(o), "",
				"owners that were taken off it on arrival are not all given back"))
		}
	}
	return out
}
