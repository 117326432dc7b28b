package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/finding"
)

// IDs documents every finding of this package, sorted by ID.
func IDs() []adopt.Entry {
	all := slices.Concat(scopeIDs(), sourceIDs(), targetIDs())
	slices.SortFunc(all, func(a, b adopt.Entry) int { return strings.Compare(a.ID, b.ID) })
	return all
}

func scopeIDs() []adopt.Entry {
	return []adopt.Entry{
		{ID: "ClusterNotFound", Severity: finding.Stops, Cause: "A Cluster that was named does not exist.",
			Remedy: "check its name and namespace"},
		{ID: "NoClusterInScope", Severity: finding.Stops, Cause: "There is no Cluster where the command looks.",
			Remedy: "give the right namespace with -n, or look into all with -A"},
		{ID: "UnreadableKind", Severity: finding.Stops, Cause: "A kind that clusterctl moves cannot be listed.",
			Remedy: "allow move-hook to list it"},
	}
}

func sourceIDs() []adopt.Entry {
	return []adopt.Entry{
		{ID: "AdoptionOptedOut", Severity: finding.Stops, Cause: "The Cluster's user wants no control plane to adopt its stand-alone control-plane Machines.",
			Remedy: "remove the annotation if they are to be adopted"},
		{ID: "BeingDeleted", Severity: finding.Stops, Cause: "An object is being deleted; clusterctl would create it anew on the target.",
			Remedy: "wait until it is gone"},
		{ID: "ControlPlaneNotInitialized", Severity: finding.Stops, Cause: "No control-plane Machine has joined as a node yet; clusterctl refuses to move such a Cluster.",
			Remedy: "wait until the control plane is initialized"},
		{ID: "DanglingReference", Severity: finding.Notes, Cause: "A spec refers to an object that does not exist."},
		{ID: "InfrastructureNotProvisioned", Severity: finding.Stops, Cause: "The Cluster's infrastructure is still being provisioned; clusterctl refuses to move it.",
			Remedy: "wait until it is provisioned"},
		{ID: "LeftBehind", Severity: finding.Harms, Cause: "An object belongs to a Cluster, or a spec refers to it, and clusterctl will not move it.",
			Remedy: "make clusterctl take it along as the finding says, or create it on the target by hand"},
		{ID: "MachineWithoutNode", Severity: finding.Stops, Cause: "A Machine has not joined its cluster; clusterctl refuses to move it.",
			Remedy: "wait until it has joined, or delete it"},
		{ID: "Paused", Severity: finding.Stops, Cause: "A Cluster or ClusterClass is paused; clusterctl moves nothing paused.",
			Remedy: "unpause it"},
		{ID: "UnseenOwner", Severity: finding.Stops, Cause: "An owner reference names a Cluster, ClusterClass or Machine that does not exist, or by another UID; clusterctl reads it nevertheless, fails and moves nothing.",
			Remedy: "correct the UID in the owner reference, or take the reference off"},
	}
}

// targetIDs are those of the checks in targetChecks.
func targetIDs() []adopt.Entry {
	return []adopt.Entry{
		{ID: "LiveOnTarget", Severity: finding.Stops, Cause: "A Cluster of the same name is on the target and not paused.",
			Remedy: "pause or remove one of the two copies"},
	}
}

// refused are the findings that no flag makes go away: clusterctl itself refuses to
// move, or there is nothing to judge.
func refused() []string {
	return []string{"ClusterNotFound", "ControlPlaneNotInitialized", "InfrastructureNotProvisioned", "MachineWithoutNode",
		"NoClusterInScope", "Paused", "UnreadableKind", "UnseenOwner"}
}

// CheckIgnore says why findings of these IDs cannot be ignored, if they cannot.
func CheckIgnore(ids []string) error {
	for _, id := range ids {
		switch known := slices.ContainsFunc(IDs(), func(e adopt.Entry) bool { return e.ID == id }); {
		case !known:
			return fmt.Errorf("--ignore %s: there is no such finding of preflight, docs/pivot.md lists them", id)
		case slices.Contains(refused(), id):
			return fmt.Errorf("--ignore %s: it cannot be ignored, because clusterctl itself refuses to move then or would move nothing", id)
		}
	}
	return nil
}

// Ignore takes the findings of these IDs out and counts them by ID.
func Ignore(fs []finding.Finding, ids []string) (left []finding.Finding, ignored map[string]int) {
	for _, f := range fs {
		if !slices.Contains(ids, f.ID) {
			left = append(left, f)
			continue
		}
		if ignored == nil {
			ignored = map[string]int{}
		}
		ignored[f.ID]++
	}
	return left, ignored
}
