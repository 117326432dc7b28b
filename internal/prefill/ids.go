package prefill

import (
	"slices"

	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// The IDs of this package's findings; those that pkg/adopt has too mean the same there.
const (
	idBeingDeleted   = "BeingDeleted"
	idBootstrapKind  = "BootstrapNotKubeadm"
	idContradiction  = "Contradiction"
	idDiffer         = "MachinesDiffer"
	idEtcd           = "ExternalEtcdUnknown"
	idEven           = "EvenReplicas"
	idForeign        = "ForeignController"
	idInfraKinds     = "InfrastructureKindsDiffer"
	idNoMachine      = "NoStandAloneMachine"
	idNotKubeadm     = "ControlPlaneNotKubeadm"
	idNotMarked      = "ControlPlaneNotMarked"
	idOptedOut       = "AdoptionOptedOut"
	idReplicas       = "ReplicasDiffer"
	idRolloutUnknown = "RolloutUnknown"
	idTemplate       = "TemplateDiffers"
	idTemplateField  = "TemplateFieldUnsure"
	idTemplateKind   = "TemplateKindUnserved"
	idTopology       = "ManagedByTopology"
	idUnknown        = "NotKnown"
	idVersion        = "VersionUnusable"
	idVersions       = "VersionsDiffer"
	idWouldRollOut   = "WouldRollOut"
)

// IDs documents the findings of this package that neither pkg/adopt nor
// internal/pivot has, sorted by ID.
func IDs() []adopt.Entry { return slices.Clone(entries) }

var entries = []adopt.Entry{
	{ID: idContradiction, Severity: finding.Harms, Cause: "A control plane that its user made says something else than the Machines; it is kept.",
		Remedy: "set the field to the Machines' value, or take it out and run move-hook prefill again"},
	{ID: idNotKubeadm, Severity: finding.Stops, Cause: "The Cluster refers to a control plane that is no KubeadmControlPlane.",
		Remedy: "there is nothing to fill in: such a control plane adopts by its own provider's rules"},
	{ID: idNotMarked, Severity: finding.Stops, Cause: "The control plane exists and is not marked for adoption, so it may not be filled in.",
		Remedy: "label it " + graph.AdoptionLabel + "=" + graph.AdoptionPending + ", or give another name with --control-plane"},
	{ID: idEven, Severity: finding.Stops, Cause: "An even number of control-plane Machines with stacked etcd; KubeadmControlPlane's webhook refuses that.",
		Remedy: "add or remove a control-plane Machine first"},
	{ID: idEtcd, Severity: finding.Stops, Cause: "The Cluster has a client certificate for an external etcd, and no Machine's configuration says where that etcd is.",
		Remedy: "set clusterConfiguration.etcd.external in the KubeadmConfigs, or in a control plane of your own"},
	{ID: idInfraKinds, Severity: finding.Stops, Cause: "The Machines stand on infrastructure of different kinds, and a control plane has one template.",
		Remedy: "replace the Machines of one kind first"},
	{ID: idDiffer, Severity: finding.Notes, Cause: "A Machine's configuration has another value than most others'."},
	{ID: idTopology, Severity: finding.Stops, Cause: "The Cluster has a topology, which makes its control plane."},
	{ID: idNoMachine, Severity: finding.Stops, Cause: "The Cluster has no control-plane Machine without a controller.",
		Remedy: "stand-alone control-plane Machines carry the labels " + graph.ClusterNameLabel + " and " + graph.ControlPlaneLabel},
	{ID: idUnknown, Severity: finding.Notes, Cause: "Something that a control plane says cannot be known from the Machines."},
	{ID: idTemplate, Severity: finding.Notes, Cause: "The template exists and says something else than the Machines; it is kept, and holds for new Machines only."},
	{ID: idTemplateField, Severity: finding.Notes, Cause: "The infrastructure of the Machines differs in a field, so that the template's value is a guess.",
		Remedy: "look at it before new Machines are made from the template"},
	{ID: idTemplateKind, Severity: finding.Stops, Cause: "The management cluster does not serve the kind of template that goes with the Machines' infrastructure.",
		Remedy: "install its provider there"},
	{ID: idVersion, Severity: finding.Stops, Cause: "A Machine has no Kubernetes version, or one that a control plane cannot have.",
		Remedy: "set the Machine's spec.version to vX.Y.Z as its node reports it"},
	{ID: idVersions, Severity: finding.Stops, Cause: "The control-plane Machines have different Kubernetes versions.",
		Remedy: "bring them to one version first"},
}

// borrowed are the severities and remedies of IDs that are documented elsewhere.
var borrowed = []adopt.Entry{
	{ID: idBeingDeleted, Severity: finding.Stops, Remedy: "let the deletion end first"},
	{ID: idBootstrapKind, Severity: finding.Stops, Remedy: "correct spec.bootstrap.configRef of the Machine"},
	{ID: idForeign, Severity: finding.Stops, Remedy: "a Machine has one controller: nothing else can adopt it"},
	{ID: idOptedOut, Severity: finding.Stops, Remedy: "remove the annotation if its Machines are to be adopted"},
	{ID: idReplicas, Severity: finding.Stops, Remedy: "set spec.replicas to the number of Machines"},
	{ID: idRolloutUnknown, Severity: finding.Harms, Remedy: "resolve what is said, then run it again"},
	{ID: idWouldRollOut, Severity: finding.Harms, Remedy: "resolve what differs, or use --allow-rollout"},
}

// about makes a finding of an ID; its severity and remedy come from the table.
func about(id string, object graph.ID, field, message string) finding.Finding {
	f := finding.Finding{ID: id, Severity: finding.Stops, Object: object.String(), Field: field, Message: message}
	all := slices.Concat(entries, borrowed)
	if i := slices.IndexFunc(all, func(e adopt.Entry) bool { return e.ID == id }); i >= 0 {
		f.Severity, f.Remedy = all[i].Severity, all[i].Remedy
	}
	return f
}

// differs is about a field that has another value than it should.
func differs(id string, object graph.ID, field, have, want, message string) finding.Finding {
	f := about(id, object, field, message)
	f.Have, f.Want = have, want
	return f
}
