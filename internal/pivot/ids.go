package pivot

import (
	"slices"

	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/finding"
)

// IDs documents the findings of Pre, Move and Verify that adopt.IDs does not have,
// sorted by ID.
func IDs() []adopt.Entry { return slices.Clone(entries()) }

func entries() []adopt.Entry {
	return []adopt.Entry{
		{ID: "AdoptionFinished", Severity: finding.Stops, Cause: "Adoption on the target has finished and its controllers run: a rollback could not give back what they have done since.",
			Remedy: "move the Clusters back, with source and target exchanged"},
		{ID: "AdoptionOptedOut", Severity: finding.Stops, Cause: "The Cluster's user wants no control plane to adopt its stand-alone control-plane Machines.",
			Remedy: "remove the annotation if they are to be adopted"},
		{ID: "ClusterNotFound", Severity: finding.Stops, Cause: "A Cluster that was named does not exist.",
			Remedy: "check its name and namespace"},
		{ID: "ControlPlaneNotInitialized", Severity: finding.Stops, Cause: "No control-plane Machine has joined as a node yet; clusterctl refuses to move such a Cluster.",
			Remedy: "wait until the control plane is initialized"},
		{ID: "DanglingReference", Severity: finding.Notes, Cause: "A spec refers to an object that does not exist."},
		{ID: "InfrastructureNotProvisioned", Severity: finding.Stops, Cause: "The Cluster's infrastructure is still being provisioned; clusterctl refuses to move it.",
			Remedy: "wait until it is provisioned"},
		{ID: "LeftBehind", Severity: finding.Harms, Cause: "An object belongs to a Cluster, or a spec refers to it, and clusterctl will not move it.",
			Remedy: "make clusterctl take it along as the finding says, or create it on the target by hand"},
		{ID: "LeftOnSource", Severity: finding.Harms, Cause: "An object of the record is still on the source after the move.",
			Remedy: "see `move-hook status`"},
		{ID: "LiveOnBothSides", Severity: finding.Stops, Cause: "Both copies of a Cluster are reconciled.",
			Remedy: "pause the copy that is to go"},
		{ID: "LiveOnTarget", Severity: finding.Stops, Cause: "A Cluster of the same name is on the target and not paused.",
			Remedy: "pause or remove one of the two copies"},
		{ID: "LiveWhileDeleting", Severity: finding.Stops, Cause: "The source's copy is reconciled although deletion from the source has begun.",
			Remedy: "pause it on the source"},
		{ID: "LostObject", Severity: finding.Stops, Cause: "An object of the record is neither on the source nor on the target, so an interrupted pivot can be neither finished nor undone.",
			Remedy: "create it by hand or bring it back from a backup"},
		{ID: "MachineOnlyOnTarget", Severity: finding.Stops, Cause: "A Machine was made on the target after the move; a rollback would leave it without anybody who knows it.",
			Remedy: "delete it on the target while its controllers run, or finish the pivot"},
		{ID: "MachineWithoutNode", Severity: finding.Stops, Cause: "A Machine has not joined its cluster; clusterctl refuses to move it.",
			Remedy: "wait until it has joined, or delete it"},
		{ID: "NoClusterInScope", Severity: finding.Stops, Cause: "There is no Cluster where the command looks.",
			Remedy: "give the right namespace with -n, or look into all with -A"},
		{ID: "NotMoved", Severity: finding.Stops, Cause: "clusterctl ended without an error, and a Cluster has not arrived or not left.",
			Remedy: "see `move-hook status`"},
		{ID: "Paused", Severity: finding.Stops, Cause: "A Cluster or ClusterClass is paused; clusterctl moves nothing paused.",
			Remedy: "unpause it"},
		{ID: "RecordUnusable", Severity: finding.Harms, Cause: "A Cluster's record is not complete or cannot be read.",
			Remedy: "give the record with --record FILE"},
		{ID: "UnreadableKind", Severity: finding.Stops, Cause: "A kind that clusterctl moves cannot be listed.",
			Remedy: "allow move-hook to list it"},
		{ID: "UnseenOwner", Severity: finding.Stops, Cause: "An owner reference names a Cluster, ClusterClass or Machine that does not exist, or by another UID; clusterctl reads it nevertheless, fails and moves nothing.",
			Remedy: "correct the UID in the owner reference, or take the reference off"},
	}
}
