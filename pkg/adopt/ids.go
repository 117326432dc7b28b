package adopt

import (
	"slices"

	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// Entry documents one kind of finding: docs/pivot.md has a section for each.
type Entry struct {
	ID       string
	Severity finding.Severity
	// Cause says in one line what leads to it.
	Cause string
	// Remedy is what to do, given with each finding of this ID.
	Remedy string
}

// The IDs of findings. Those that stop an adoption are its refusals; verify
// reports the same IDs as harms.
const (
	idAmbiguousOwner    = "AmbiguousOwner"
	idBeingDeleted      = "BeingDeleted"
	idBootstrapKind     = "BootstrapNotKubeadm"
	idDanglingOwner     = "DanglingOwner"
	idDoubledOwner      = "DoubledOwner"
	idExtraMachine      = "ExtraMachine"
	idExtraScaler       = "ExtraScaler"
	idForeignController = "ForeignController"
	idForeignOwner      = "ForeignOwner"
	idHoldLeft          = "HoldLeft"
	idImpossibleState   = "ImpossibleState"
	idLabelLeft         = "LabelLeft"
	idLabelLost         = "LabelLost"
	idMachineAppeared   = "MachineAppeared"
	idMachineGone       = "MachineGone"
	idMissingObject     = "MissingObject"
	idMissingOwner      = "MissingOwner"
	idNotController     = "OwnerNotController"
	idNotPartOfAPivot   = "NotPartOfAPivot"
	idOwnerAPIVersion   = "OwnerAPIVersion"
	idOwnerBeingDeleted = "OwnerBeingDeleted"
	idPauseLeft         = "PauseLeft"
	idPauseLost         = "PauseLost"
	idPredictionVersion = "PredictionVersion"
	idProviderIDChanged = "ProviderIDChanged"
	idReplicasChanged   = "ReplicasChanged"
	idReplicasDiffer    = "ReplicasDiffer"
	idRolloutUnknown    = "RolloutUnknown"
	idSecondController  = "SecondController"
	idSourceUnpaused    = "SourceUnpaused"
	idStaleOwnerUID     = "StaleOwnerUID"
	idTwoControlPlanes  = "TwoControlPlanes"
	idTwoControllers    = "TwoControllersExpected"
	idOtherControlPlane = "OtherControlPlane"
	idOwnersHeld        = "OwnersHeld"
	idOwnersUnreadable  = "OwnersUnreadable"
	idUnexpectedOwner   = "UnexpectedOwner"
	idUnjudged          = "Unjudged"
	idUserPause         = "UserPause"
	idVersionChanged    = "VersionChanged"
	idVersionSkew       = "VersionSkew"
	idWillRollOut       = "WillRollOut"
	idWouldRollOut      = "WouldRollOut"
	idWrongOwner        = "WrongOwner"
	idInvalidOwners     = "InvalidOwners"
	idOwnerUnknown      = "OwnerUnknown"

	remedyPost           = "run move-hook post"
	remedyLookAndDecide  = "find out who did it, then put the record's state back or accept the new one"
	remedyByHandThenPost = "correct it by hand, then run move-hook post"
)

// IDs documents every ID that Decide and Verify can give, sorted.
func IDs() []Entry { return slices.Clone(entries) }

var entries = []Entry{
	{idAmbiguousOwner, finding.Stops, "More than one owner fits an object and nothing on it tells which one had it.",
		"set the label that names the owner (" + graph.DeploymentNameLabel + " or " + graph.SetNameLabel + "), or give the record with --record FILE"},
	{idBeingDeleted, finding.Stops, "An object of the Cluster has a deletionTimestamp.",
		"let the deletion end and restore the object again, or take it out of the pivot"},
	{idBootstrapKind, finding.Stops, "A KubeadmControlPlane can only adopt Machines whose bootstrap config is a KubeadmConfig.",
		"correct spec.bootstrap.configRef of the Machine"},
	{idDanglingOwner, finding.Harms, "An owner reference names an object that does not exist; the garbage collector deletes an object all of whose owners are gone.",
		"restore the owner, or run move-hook post --prune-dangling"},
	{idDoubledOwner, finding.Harms, "An object has the same owner twice.", remedyPost},
	{idExtraMachine, finding.Harms, "A Machine of the Cluster is not in the record: a controller acted on an incomplete set, or somebody scaled.",
		remedyLookAndDecide},
	{idExtraScaler, finding.Harms, "A control plane, MachineDeployment, MachineSet or MachinePool of the Cluster is not in the record.",
		remedyLookAndDecide},
	{idForeignController, finding.Stops, "A Machine is controlled by something else than the owner that it had.",
		"remove the wrong controller's owner reference by hand after pausing that controller's object"},
	{idForeignOwner, finding.Notes, "An object has an owner that nobody expected; it is kept.", ""},
	{idHoldLeft, finding.Harms, "An object is still held by move-hook.", remedyPost},
	{idImpossibleState, finding.Stops, "The facts contradict each other.", remedyByHandThenPost},
	{idInvalidOwners, finding.Stops, "The corrected owner references would break a rule of the API server.", remedyByHandThenPost},
	{idLabelLeft, finding.Harms, "An object still carries the adoption label.", remedyPost},
	{idLabelLost, finding.Stops, "An object lost a label by which its controller finds it, so the controller would count it as absent and make another.",
		"set the label again"},
	{idMachineAppeared, finding.Harms, "A Machine was made after the scalers were released.", remedyLookAndDecide},
	{idMachineGone, finding.Harms, "A Machine went, or is going, after the scalers were released.", remedyLookAndDecide},
	{idMissingObject, finding.Harms, "An object that the record or the Cluster's own specs name does not exist.",
		"restore it, or create it by hand"},
	{idMissingOwner, finding.Harms, "An owner reference that the record or the rules expect is not there.", remedyPost},
	{idNotPartOfAPivot, finding.Notes, "Nothing says that the Cluster is being pivoted: it has no record, no adoption label and no hold.",
		"name the Cluster, or use --adopt-unmarked, if it is"},
	{idOtherControlPlane, finding.Notes, "The control plane is no KubeadmControlPlane: what only holds for one is not judged.", ""},
	{idOwnerAPIVersion, finding.Notes, "An owner reference names a version of the API that the server does not prefer.", remedyPost},
	{idOwnerBeingDeleted, finding.Stops, "The owner that an object should have is being deleted.",
		"let the deletion end and restore the owner again"},
	{idNotController, finding.Harms, "An owner that manages the object is not marked as its controller.", remedyPost},
	{idOwnerUnknown, finding.Harms, "The kind of an expected owner could not be listed, so its reference cannot be judged.",
		"give move-hook the right to list that kind"},
	{idOwnersHeld, finding.Harms, "An object still carries owner references that an armed target took off it: it is not owned by all that owned it.", remedyPost},
	{idOwnersUnreadable, finding.Stops, "The annotation with the owner references that an armed target took off cannot be read.",
		"correct the annotation " + graph.OwnersAnnotation + ", give the record with --record FILE, or remove the annotation to let Cluster API's own rules decide"},
	{idPauseLeft, finding.Harms, "An object is paused that was not paused on the source.",
		"unpause it if nobody meant to pause it"},
	{idPauseLost, finding.Harms, "An object that its user had paused on the source is not paused any more.",
		"pause it again"},
	{idPredictionVersion, finding.Notes, "Whether Machines would be replaced was judged as another Cluster API release does than the installed one.",
		"use a move-hook of that Cluster API release where the difference matters"},
	{idProviderIDChanged, finding.Harms, "A Machine stands for another instance than on the source.", remedyLookAndDecide},
	{idReplicasChanged, finding.Harms, "spec.replicas is not what it was on the source.", remedyLookAndDecide},
	{idReplicasDiffer, finding.Stops, "A scaler would make or delete Machines as soon as it is released.",
		"set spec.replicas to the number of Machines, or use --allow-scale"},
	{idRolloutUnknown, finding.Stops, "Nobody can say whether the control plane would replace stand-alone Machines that it is to adopt.",
		"give move-hook the right to read what it names, or use --allow-rollout"},
	{idSecondController, finding.Stops, "An object has a controller other than the one expected, and the API server refuses a second.",
		"remove the wrong controller's owner reference by hand; a dangling one goes with --prune-dangling"},
	{idSourceUnpaused, finding.Stops, "The Cluster's copy on the source is not paused: both copies would be reconciled.",
		"pause the source's Cluster, or delete the source's copy from its management cluster without deleting the infrastructure"},
	{idStaleOwnerUID, finding.Harms, "An owner reference has a UID of another copy of its owner.", remedyPost},
	{idTwoControlPlanes, finding.Stops, "More than one control plane claims the Cluster.",
		"delete the one that spec.controlPlaneRef does not name, after pausing it"},
	{idTwoControllers, finding.Stops, "Two controllers are expected for one object.",
		"make a new record with move-hook pre, or use the rules by leaving the record out"},
	{idUnexpectedOwner, finding.Harms, "A race gave a Machine its Cluster as a second owner beside its controller.", remedyPost},
	{idUnjudged, finding.Harms, "A kind could not be listed, so its objects cannot be judged.",
		"give move-hook the right to list that kind"},
	{idUserPause, finding.Notes, "An object was paused by its user and stays paused.", ""},
	{idVersionChanged, finding.Harms, "The Kubernetes version is not what it was on the source.", remedyLookAndDecide},
	{idVersionSkew, finding.Stops, "A control-plane Machine has another Kubernetes version than its control plane, which would replace it.",
		"set the control plane's spec.version to the Machines', or use --max-version-skew=1"},
	{idWillRollOut, finding.Notes, "The control plane will replace a Machine: a flag allows it, or it would have done so on the source as well.", ""},
	{idWouldRollOut, finding.Stops, "The control plane would replace a Machine as soon as it is released.",
		"make the control plane's spec equal to the Machine's, or use --allow-rollout"},
	{idWrongOwner, finding.Harms, "An object is owned by another object than the one it had.", remedyPost},
}

// about makes a finding of a documented ID; its severity and remedy come from the table.
func about(id string, object graph.ID, message string) finding.Finding {
	f := finding.Finding{ID: id, Severity: finding.Stops, Object: object.String(), Message: message}
	if i := slices.IndexFunc(entries, func(e Entry) bool { return e.ID == id }); i >= 0 {
		f.Severity, f.Remedy = entries[i].Severity, entries[i].Remedy
	}
	return f
}

// differs is about one field that has another value than it should.
func differs(id string, object graph.ID, field, have, want, message string) finding.Finding {
	f := about(id, object, message)
	f.Field, f.Have, f.Want = field, have, want
	return f
}
