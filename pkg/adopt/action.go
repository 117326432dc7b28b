package adopt

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/move-hook/move-hook/pkg/graph"
)

func targetOf(o *graph.Object) Target {
	return Target{ID: o.ID, UID: o.UID, ResourceVersion: o.ResourceVersion, APIVersion: o.APIVersion}
}

// Target is the object whose owner references are replaced.
func (a SetOwners) Target() Target { return a.On }

// Why is what is wrong with the references.
func (a SetOwners) Why() Reason { return a.Reason }

// String is "set owners of Machine default/m: *MachineSet/ms@old -> *MachineSet/ms@new (stale UID)",
// a star marking the controller.
func (a SetOwners) String() string {
	return fmt.Sprintf("set owners of %s: %s -> %s (%s)", a.On.ID, ownersString(a.Before), ownersString(a.After), a.Reason)
}

func (a SetOwners) sealed() {}

// Target is the object whose labels and annotations change.
func (a ChangeMeta) Target() Target { return a.On }

// Why is the purpose of the change.
func (a ChangeMeta) Why() Reason { return a.Reason }

// String is "change Cluster default/c1: +annotation x (about to release)".
func (a ChangeMeta) String() string {
	return fmt.Sprintf("change %s: %s (%s)", a.On.ID, a.Change, a.Reason)
}

func (a ChangeMeta) sealed() {}

// Target is the record's ConfigMap.
func (a CloseRecord) Target() Target { return a.On }

// Why is why the record is done.
func (a CloseRecord) Why() Reason { return a.Reason }

// String is "close record ConfigMap default/move-hook-record-c1 (adoption finished)".
func (a CloseRecord) String() string {
	return fmt.Sprintf("close record %s (%s)", a.On.ID, a.Reason)
}

func (a CloseRecord) sealed() {}

func ownersString(refs []metav1.OwnerReference) string {
	if len(refs) == 0 {
		return "none"
	}
	parts := make([]string, len(refs))
	for i, r := range refs {
		parts[i] = ownerString(r)
	}
	return strings.Join(parts, ", ")
}

// ownerString is "*MachineSet/ms@uid", the star marking the controller.
func ownerString(r metav1.OwnerReference) string {
	star := ""
	if isTrue(r.Controller) {
		star = "*"
	}
	uid := string(r.UID)
	if uid == "" {
		uid = `""`
	}
	return fmt.Sprintf("%s%s/%s@%s", star, r.Kind, r.Name, uid)
}

func isTrue(b *bool) bool { return b != nil && *b }

func yes() *bool {
	b := true
	return &b
}
