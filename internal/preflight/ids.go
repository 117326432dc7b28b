package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/finding"
)

// IDs documents the findings of this package that adopt.IDs does not have, sorted by ID.
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
		{ID: "BlockMove", Severity: finding.Notes, Cause: "An object carries clusterctl's block-move annotation: clusterctl pauses the Cluster and then waits until the object's controller takes it off.",
			Remedy: "make sure that its controller runs"},
		{ID: "CertificatesExpiryForgotten", Severity: finding.Notes, Cause: "Only a Machine's status tells when its certificates expire, and status is not moved: spec.rollout.before does not see it on the target until the control plane has looked again.",
			Remedy: "annotate the Machine as the finding says, if that matters"},
		{ID: "CollectorTakes", Severity: finding.Harms, Cause: "None of an object's owners exists: clusterctl leaves it behind, and the garbage collector deletes it.",
			Remedy: "correct the owner references, or take them off"},
		{ID: "EndpointNotInSpec", Severity: finding.Harms, Cause: "No spec says where the API server of a Cluster is, and status is not moved.",
			Remedy: "set spec.controlPlaneEndpoint of the infrastructure"},
		{ID: "InFlight", Severity: finding.Harms, Cause: "A rollout, scaling, remediation, update in place or runtime hook has begun and not ended.",
			Remedy: "wait until it has; pre waits for what makes or deletes Machines"},
		{ID: "OverlappingSelectors", Severity: finding.Harms, Cause: "A MachineDeployment or MachineSet selects what is another's: where owner references are lost, as in a restore, it would adopt that and scale it away.",
			Remedy: "let move-hook post put the owners right, or give each scaler a label of its own"},
		{ID: "OwnerCycle", Severity: finding.Harms, Cause: "Objects own each other in a circle; clusterctl leaves them behind.",
			Remedy: "take one owner reference of the cycle off"},
		{ID: "OwnerElsewhere", Severity: finding.Harms, Cause: "An owner reference names an object of another namespace, which cannot be an owner.",
			Remedy: "take the owner reference off"},
		{ID: "OwnerGone", Severity: finding.Harms, Cause: "One of an object's owners does not exist; clusterctl leaves the object behind.",
			Remedy: "take the owner reference off"},
		{ID: "OwnerStale", Severity: finding.Harms, Cause: "One of an object's owner references has the UID of another copy; clusterctl leaves the object behind.",
			Remedy: "correct the UID"},
		{ID: "OwnerTwice", Severity: finding.Harms, Cause: "An object names the same owner twice.",
			Remedy: "take one of the two owner references off"},
		{ID: "OwnerVersion", Severity: finding.Notes, Cause: "An owner reference names a version of the API that the source does not prefer."},
		{ID: "ProviderIDNotInSpec", Severity: finding.Stops, Cause: "A Machine or its infrastructure does not say in its spec which instance it is; status is not moved, so its provider would make another one.",
			Remedy: "wait until its controller has set spec.providerID, or set it by hand"},
		{ID: "RolloutAfterForgotten", Severity: finding.Harms, Cause: "spec.rollout.after still has to replace Machines that are older; a move makes them young.",
			Remedy: "wait until the rollout has ended, or set a time after the move"},
		{ID: "StaysOnBothSides", Severity: finding.Notes, Cause: "clusterctl copies the object and leaves the source's copy: it is cluster-scoped, or a ClusterClass of another namespace or with Clusters that stay."},
		{ID: "TwoControllers", Severity: finding.Stops, Cause: "An object has more than one controller, which no API server accepts.",
			Remedy: "leave the one that manages it"},
		{ID: "AdoptionOptedOut", Severity: finding.Stops, Cause: "The Cluster's user wants no control plane to adopt its stand-alone control-plane Machines.",
			Remedy: "remove the annotation if they are to be adopted"},
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
		{ID: "AlreadyThere", Severity: finding.Notes, Cause: "Objects of the same names and content are on the target already, as an interrupted move leaves them.",
			Remedy: "see `move-hook status`"},
		{ID: "KindMissing", Severity: finding.Stops, Cause: "The target does not serve a kind of which objects move.",
			Remedy: "install its provider on the target"},
		{ID: "KindUnlabelled", Severity: finding.Harms, Cause: "The target's CustomResourceDefinition of a kind does not carry clusterctl's label: a later move from there leaves objects of that kind behind.",
			Remedy: "label the CustomResourceDefinition as the finding says"},
		{ID: "LiveOnTarget", Severity: finding.Stops, Cause: "A Cluster of the same name is on the target and not paused.",
			Remedy: "pause or remove one of the two copies"},
		{ID: "MissingPermission", Severity: finding.Stops, Cause: "This user may not do on the source or the target what a pivot has to do there; a note where the pivot goes on without.",
			Remedy: "apply the ClusterRole that `move-hook preflight --print-role source|target` prints, and bind the user to it"},
		{ID: "NameClash", Severity: finding.Stops, Cause: "An object of the target has the name of one that moves and other content: clusterctl would overwrite it. It harms and does not stop where an earlier try of the same Cluster left it, or where it is cluster-scoped and clusterctl keeps the target's.",
			Remedy: "remove it from the target if it is a leftover, else rename one of the two"},
		{ID: "NamespaceTerminating", Severity: finding.Stops, Cause: "A namespace of what moves is being deleted on the target.",
			Remedy: "wait until it is gone"},
		{ID: "OfferUnsure", Severity: finding.Notes, Cause: "The target would not take an object in a dry run, for a reason that the move itself may remove: its namespace does not exist there yet, it looks for another object that moves too, or a webhook may not be asked.",
			Remedy: "create the namespace on the target beforehand to know it"},
		{ID: "ProviderMissing", Severity: finding.Stops, Cause: "clusterctl's inventory of the target lacks a provider that the source's has; clusterctl refuses to move.",
			Remedy: "install it with `clusterctl init`"},
		{ID: "ProviderOlder", Severity: finding.Stops, Cause: "A provider is older on the target than on the source; clusterctl refuses to move.",
			Remedy: "upgrade it with `clusterctl upgrade apply`"},
		{ID: "QuotaExceeded", Severity: finding.Stops, Cause: "A ResourceQuota of the target has no room for all that moves.",
			Remedy: "raise it"},
		{ID: "RefusedByTarget", Severity: finding.Stops, Cause: "The target would refuse an object: by its schema, an admission webhook (a feature gate that is off, for example) or a policy. The finding quotes it.",
			Remedy: "resolve on the target what it says, or change the object on the source"},
		{ID: "VersionMissing", Severity: finding.Stops, Cause: "The target serves a kind, and not in the version in which clusterctl creates its objects (the one in which the source stores it).",
			Remedy: "upgrade the provider on the older side"},
	}
}

// refused are the findings that no flag makes go away: clusterctl itself refuses to
// move, or there is nothing to judge.
func refused() []string {
	return []string{"ClusterNotFound", "ControlPlaneNotInitialized", "InfrastructureNotProvisioned", "KindMissing", "MachineWithoutNode",
		"NamespaceTerminating", "NoClusterInScope", "Paused", "ProviderMissing", "ProviderOlder", "UnreadableKind", "UnseenOwner", "VersionMissing"}
}

// shared are the findings of this package that adopt.IDs documents.
func shared() []string {
	return []string{"BeingDeleted", "OtherControlPlane", "PredictionVersion", "RolloutUnknown", "WillRollOut"}
}

// CheckIgnore says why findings of these IDs cannot be ignored, if they cannot.
func CheckIgnore(ids []string) error {
	for _, id := range ids {
		switch known := slices.Contains(shared(), id) || slices.ContainsFunc(IDs(), func(e adopt.Entry) bool { return e.ID == id }); {
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
