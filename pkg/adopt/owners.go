package adopt

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// judgement is under construction: refs run parallel to ids.
type judgement struct {
	*verdict
	v    *view
	x    expectation
	refs []metav1.OwnerReference
	ids  []graph.ID
}

// judge compares an object's owner references with who should own it, by
// identity, as upstream's ClaimObject does by UID (controller_ref_manager.go):
//
//	same identity, live UID   keep
//	same identity, other UID  correct in place, flags kept
//	expected, not there       add
//	not expected              keep and note
//	a second controller       refuse
//	either end being deleted  refuse
//	its kind was not listed   wait
func (v *view) judge(o *graph.Object) *verdict {
	j := &judgement{verdict: &verdict{object: o}, v: v, x: v.expect(o)}
	for _, w := range j.x.wants {
		if !w.may {
			j.wants = append(j.wants, w.ID)
		}
	}
	if len(j.x.candidates) > 0 {
		j.ambiguous()
	}
	if j.x.unreadable != nil {
		j.unreadable()
	}
	for _, e := range j.distinct() {
		j.present(e)
	}
	for _, w := range j.x.wants {
		if !w.may && !slices.Contains(j.ids, w.ID) {
			j.absent(w)
		}
	}
	j.controllers()
	j.finish()
	return j.verdict
}

func (j *judgement) fault(c cure, f finding.Finding, reason Reason) {
	j.faults = append(j.faults, fault{Finding: f, cure: c, reason: reason})
}

func (j *judgement) await(f finding.Finding, m Missing) {
	j.faults = append(j.faults, fault{Finding: f, cure: wait, await: m})
}

const fieldOwners = "metadata.ownerReferences"

func (j *judgement) ambiguous() {
	var names []string
	for _, c := range j.x.candidates {
		names = append(names, c.String())
	}
	slices.Sort(names)
	j.fault(refuse, differs(idAmbiguousOwner, j.object.ID, fieldOwners, ownersString(j.object.Owners), strings.Join(names, " or "),
		"more than one owner fits and nothing tells which"), "")
}

// distinct are the owner edges, each identity once: the live one of a doubled
// reference stays where it is, and manages if any of them did.
func (j *judgement) distinct() []graph.Edge {
	var out []graph.Edge
	for _, e := range j.v.Graph.Owners(j.object.ID) {
		if e.Kind != graph.Owner {
			continue
		}
		i := slices.IndexFunc(out, func(have graph.Edge) bool { return have.To == e.To })
		if i < 0 {
			out = append(out, e)
			continue
		}
		j.fault(repair, differs(idDoubledOwner, j.object.ID, fieldOwners, ownerString(out[i].Owner)+", "+ownerString(e.Owner), "one of them",
			"the same owner is there twice"), "doubled")
		controller := isTrue(out[i].Owner.Controller) || isTrue(e.Owner.Controller)
		if out[i].State != graph.Live && e.State == graph.Live {
			out[i] = e
		}
		if controller {
			out[i].Owner.Controller = yes()
		}
	}
	return out
}

// present judges a reference that is there.
func (j *judgement) present(e graph.Edge) {
	ref := *e.Owner.DeepCopy()
	i := slices.IndexFunc(j.x.wants, func(w want) bool { return w.ID == e.To })
	expected := i >= 0 && !j.x.wants[i].may
	owner, _ := j.v.Graph.Object(e.To)
	if !expected && i < 0 && j.raced(e) {
		j.fault(repair, differs(idUnexpectedOwner, j.object.ID, fieldOwners, ownerString(ref), "",
			"its Cluster owns it beside its controller"), "second owner put there by a race")
		return
	}
	switch e.State {
	case graph.Stale:
		if owner.Deleting {
			j.deleting(e.To, expected)
			break
		}
		j.fault(repair, differs(idStaleOwnerUID, j.object.ID, fieldOwners, ownerString(ref), string(owner.UID),
			fmt.Sprintf("the UID of %s is of another copy", e.To)), "stale UID")
		ref.UID = owner.UID
		j.owners = append(j.owners, targetOf(owner))
	case graph.Dangling:
		switch {
		case expected:
			j.await(differs(idMissingOwner, j.object.ID, fieldOwners, ownerString(ref), "", fmt.Sprintf("its owner %s does not exist", e.To)), j.awaited(e.To))
		case j.v.Policy.PruneDangling:
			j.fault(repair, j.dangling(e), "dangling, pruned")
			return
		default:
			j.fault(keep, j.dangling(e), "")
		}
	case graph.Unknown:
		if expected {
			j.await(differs(idOwnerUnknown, j.object.ID, fieldOwners, ownerString(ref), "", fmt.Sprintf("the kind of its owner %s could not be listed", e.To)), j.awaited(e.To))
		}
	case graph.Live:
		if i < 0 && j.x.covered && !j.manages(e) && !j.leaves(e) {
			j.fault(keep, about(idForeignOwner, j.object.ID, fmt.Sprintf("%s owns it as well, which nobody expected; it is kept", e.To)), "")
		}
	}
	if expected && (e.State == graph.Live || e.State == graph.Stale) {
		ref = j.attributes(ref, j.x.wants[i])
	}
	j.refs, j.ids = append(j.refs, ref), append(j.ids, e.To)
}

// attributes corrects what upstream's controllers on this server would write.
// Flags of a right owner are never changed, except that one which should manage
// and does not is made the controller where nothing else is. With a Cluster as
// owner not even that: whether it manages differs between releases (v1.13 and
// later only with a topology), and its controller would change it back.
func (j *judgement) attributes(ref metav1.OwnerReference, w want) metav1.OwnerReference {
	if info, ok := j.v.Graph.KindInfo(w.GroupKind()); ok && info.APIVersion != "" && info.APIVersion != ref.APIVersion {
		j.fault(repair, differs(idOwnerAPIVersion, j.object.ID, fieldOwners, ref.APIVersion, info.APIVersion,
			fmt.Sprintf("the reference to %s has another version than the server prefers", w.ID)), "old apiVersion")
		ref.APIVersion = info.APIVersion
	}
	_, managed := j.v.Graph.Controller(j.object.ID)
	if isTrue(w.controller) && !isTrue(ref.Controller) && !managed && w.GroupKind() != graph.Cluster {
		j.fault(repair, differs(idNotController, j.object.ID, fieldOwners, ownerString(ref), "controller: true",
			fmt.Sprintf("%s should manage it", w.ID)), "not marked as controller")
		ref.Controller = yes()
	}
	return ref
}

// absent judges an owner that is expected and not there: it is added, or takes
// the place of a controller that hands over to it.
func (j *judgement) absent(w want) {
	owner, ok := j.v.Graph.Object(w.ID)
	name := w.Kind + "/" + w.Name
	if !ok {
		j.await(differs(idMissingOwner, j.object.ID, fieldOwners, ownersString(j.object.Owners), name, fmt.Sprintf("its owner %s does not exist", w.ID)), j.awaited(w.ID))
		return
	}
	if owner.Deleting {
		j.deleting(w.ID, true)
		return
	}
	info, _ := j.v.Graph.KindInfo(w.GroupKind())
	ref := metav1.OwnerReference{
		APIVersion: cmp.Or(info.APIVersion, w.apiVersion, owner.APIVersion), Kind: w.Kind, Name: w.Name, UID: owner.UID,
		Controller: w.controller, BlockOwnerDeletion: w.block,
	}
	j.owners = append(j.owners, targetOf(owner))
	if isTrue(w.controller) {
		for i := range j.refs {
			if isTrue(j.refs[i].Controller) && j.handsOver(j.ids[i], w) {
				j.fault(repair, differs(idWrongOwner, j.object.ID, fieldOwners, ownerString(j.refs[i]), name,
					fmt.Sprintf("%s has handed it over to %s", j.ids[i], w.ID)), "taken over; "+w.why)
				j.refs[i], j.ids[i] = ref, w.ID
				return
			}
		}
	}
	id, message := idMissingOwner, fmt.Sprintf("%s does not own it", w.ID)
	if len(j.object.Owners) > 0 && !slices.ContainsFunc(j.x.wants, func(w want) bool { return slices.Contains(j.ids, w.ID) }) {
		id, message = idWrongOwner, fmt.Sprintf("it is not owned by %s but by another", w.ID)
	}
	j.fault(repair, differs(id, j.object.ID, fieldOwners, ownersString(j.object.Owners), name, message), w.why)
	j.refs, j.ids = append(j.refs, ref), append(j.ids, w.ID)
}

// leaves says that a controller is about to hand the object over: nothing to note.
func (j *judgement) leaves(e graph.Edge) bool {
	return e.Controller() && slices.ContainsFunc(j.x.wants, func(w want) bool { return isTrue(w.controller) && j.handsOver(e.To, w) })
}

// handsOver: the bootstrap provider's certificates, and a kubeconfig, become the
// control plane's, whatever the UID (upstream's adoptOwnedSecrets and
// adoptKubeconfigSecret replace the controller, they do not add one).
func (j *judgement) handsOver(from graph.ID, to want) bool {
	if j.object.GroupKind() != graph.Secret || to.Group != graph.ControlPlaneGroup {
		return false
	}
	return from.GroupKind() == graph.KubeadmConfig || from == j.v.Cluster
}

// raced recognises the one owner that is removed: the Machine controller gives a
// Machine its Cluster while it looks stand-alone, and a controller comes later.
// A Machine that a control plane adopted keeps its Cluster, and the rules cannot
// tell: by them only those of MachineSets are sure.
func (j *judgement) raced(e graph.Edge) bool {
	if j.object.GroupKind() != graph.Machine || e.To != j.v.Cluster || e.Controller() {
		return false
	}
	for _, w := range j.x.wants {
		if isTrue(w.controller) && (j.x.sure || w.GroupKind() == graph.MachineSet) {
			return true
		}
	}
	return false
}

// manages says that a reference which is not expected controls a Machine or
// MachineSet: then controllers() refuses it.
func (j *judgement) manages(e graph.Edge) bool {
	gk := j.object.GroupKind()
	return e.Controller() && (gk == graph.Machine || gk == graph.MachineSet)
}

// controllers refuses more than one controller, and one that takes Machines or
// MachineSets from the owner that they should have.
func (j *judgement) controllers() {
	expected := map[graph.ID]bool{}
	managing := 0
	for _, w := range j.x.wants {
		expected[w.ID] = true
		if isTrue(w.controller) && !w.may {
			managing++
		}
	}
	if managing > 1 {
		j.fault(refuse, about(idTwoControllers, j.object.ID, "two controllers are expected for it"), "")
		return
	}
	if !j.x.covered || len(j.x.candidates) > 0 || j.x.unreadable != nil {
		return
	}
	for i, ref := range j.refs {
		owner, exists := j.v.Graph.Object(j.ids[i])
		if !isTrue(ref.Controller) || expected[j.ids[i]] {
			continue
		}
		takes := exists && owner != nil && (j.object.GroupKind() == graph.Machine || j.object.GroupKind() == graph.MachineSet)
		if managing == 0 && !takes {
			continue
		}
		id := idSecondController
		if j.object.GroupKind() == graph.Machine {
			id = idForeignController
		}
		j.fault(refuse, differs(id, j.object.ID, fieldOwners, ownerString(ref), j.wanted(),
			fmt.Sprintf("%s controls it", j.ids[i])), "")
	}
}

func (j *judgement) wanted() string {
	var out []string
	for _, w := range j.x.wants {
		if !w.may {
			out = append(out, w.Kind+"/"+w.Name)
		}
	}
	return strings.Join(out, ", ")
}

// finish checks what would be written against the API server's rules and our own.
func (j *judgement) finish() {
	if !j.has(repair) {
		return
	}
	if j.object.Deleting {
		j.fault(refuse, about(idBeingDeleted, j.object.ID, "it is being deleted"), "")
	}
	after, broken := ownersAfter(j.refs, j.ids)
	if broken != "" && !j.has(refuse) {
		j.fault(refuse, differs(idInvalidOwners, j.object.ID, fieldOwners, ownersString(j.object.Owners), ownersString(j.refs), broken), "")
	}
	j.after = after
}

func (j *judgement) deleting(owner graph.ID, expected bool) {
	if !expected {
		return // left as it is
	}
	j.fault(refuse, about(idOwnerBeingDeleted, j.object.ID, fmt.Sprintf("its owner %s is being deleted", owner)), "")
}

func (j *judgement) dangling(e graph.Edge) finding.Finding {
	return differs(idDanglingOwner, j.object.ID, fieldOwners, ownerString(e.Owner), "", fmt.Sprintf("its owner %s does not exist", e.To))
}

func (j *judgement) awaited(owner graph.ID) Missing {
	maker := byMove
	if n, ok := j.v.recorded(owner); ok && !n.Moves {
		maker = byHand
	}
	m := j.v.missing(owner, maker)
	m.What += fmt.Sprintf(" and should own %s", j.object.ID)
	return m
}
