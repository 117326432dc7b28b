package adopt

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// cure is what the planner does about a fault.
type cure int

const (
	keep   cure = iota // report it, change nothing
	repair             // put it right
	wait               // it may come right by itself
	refuse             // repairing would harm
)

// fault is one thing that is not right about an object's owner references.
type fault struct {
	finding.Finding
	cure   cure
	reason Reason  // of a repair
	await  Missing // of a wait
}

// verdict is the judgement about one object's owner references.
type verdict struct {
	object *graph.Object
	after  []metav1.OwnerReference
	owners []Target // the copies that after names and before did not
	wants  []graph.ID
	faults []fault
}

func (d *verdict) has(c cure) bool {
	return slices.ContainsFunc(d.faults, func(f fault) bool { return f.cure == c })
}

// action is the write that repairs; false if there is nothing to write or no way to.
func (d *verdict) action() (SetOwners, bool) {
	if !d.has(repair) || d.has(wait) || d.has(refuse) {
		return SetOwners{}, false
	}
	var why []string
	for _, f := range d.faults {
		if f.cure == repair && !slices.Contains(why, string(f.reason)) {
			why = append(why, string(f.reason))
		}
	}
	return SetOwners{
		On: targetOf(d.object), Before: d.object.Owners, After: d.after,
		Reason: Reason(strings.Join(why, "; ")), owners: d.owners,
	}, true
}

// ownersAfter is the only way to make the owners of a SetOwners. It gives no
// owners, and says why, where an identity or a UID would be there twice, a UID be
// empty, or more than one owner be the controller.
func ownersAfter(refs []metav1.OwnerReference, ids []graph.ID) ([]metav1.OwnerReference, string) {
	seenID, seenUID := map[graph.ID]bool{}, map[string]bool{}
	controllers := 0
	for i, r := range refs {
		if isTrue(r.Controller) {
			controllers++
		}
		switch uid := string(r.UID); {
		case uid == "":
			return nil, fmt.Sprintf("%s would have no UID", ids[i])
		case seenID[ids[i]]:
			return nil, fmt.Sprintf("%s would be there twice", ids[i])
		case seenUID[uid]:
			return nil, fmt.Sprintf("UID %s would be there twice", uid)
		case controllers > 1:
			return nil, "there would be two controllers"
		default:
			seenID[ids[i]], seenUID[uid] = true, true
		}
	}
	return slices.Clone(refs), ""
}
