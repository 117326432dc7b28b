package graph

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The groups and kinds that Cluster API itself defines and that rules name.
const (
	CoreGroup         = "cluster.x-k8s.io"
	BootstrapGroup    = "bootstrap.cluster.x-k8s.io"
	ControlPlaneGroup = "controlplane.cluster.x-k8s.io"
	AddonsGroup       = "addons.cluster.x-k8s.io"
)

// Kinds that rules name. Control plane and infrastructure kinds are whatever a
// Cluster or Machine refers to: they are found by reference, not by name.
var (
	Cluster                   = GroupKind{CoreGroup, "Cluster"}
	ClusterClass              = GroupKind{CoreGroup, "ClusterClass"}
	Machine                   = GroupKind{CoreGroup, "Machine"}
	MachineSet                = GroupKind{CoreGroup, "MachineSet"}
	MachineDeployment         = GroupKind{CoreGroup, "MachineDeployment"}
	MachinePool               = GroupKind{CoreGroup, "MachinePool"}
	MachineHealthCheck        = GroupKind{CoreGroup, "MachineHealthCheck"}
	KubeadmConfig             = GroupKind{BootstrapGroup, "KubeadmConfig"}
	KubeadmConfigTemplate     = GroupKind{BootstrapGroup, "KubeadmConfigTemplate"}
	KubeadmControlPlane       = GroupKind{ControlPlaneGroup, "KubeadmControlPlane"}
	ClusterResourceSet        = GroupKind{AddonsGroup, "ClusterResourceSet"}
	ClusterResourceSetBinding = GroupKind{AddonsGroup, "ClusterResourceSetBinding"}
	Secret                    = GroupKind{"", "Secret"}
	ConfigMap                 = GroupKind{"", "ConfigMap"}
)

// KindInfo is what discovery knows of a kind. It decides clusterctl's move set
// and how an owner reference (which has no namespace) is resolved.
type KindInfo struct {
	GroupKind
	// APIVersion is the version the server prefers: what upstream's controllers
	// on this server write into owner references.
	APIVersion string
	Namespaced bool
	// Discovered means that clusterctl lists this kind: its CRD carries the label
	// clusterctl.cluster.x-k8s.io, or it is Secret or ConfigMap.
	Discovered bool
	// ForceMove and ForceMoveHierarchy: the CRD's move and move-hierarchy labels;
	// Cluster, ClusterClass and ClusterResourceSet have both by clusterctl's rule.
	ForceMove, ForceMoveHierarchy bool
}

// Object is one object as it was read. Treat as immutable once it was added to a Builder.
type Object struct {
	ID
	UID             types.UID
	ResourceVersion string
	// APIVersion is the version it was read in, for example "cluster.x-k8s.io/v1beta2".
	APIVersion string
	Created    time.Time
	Owners     []metav1.OwnerReference
	Refs       []Ref
	// Hints are references that the spec seems to make (a name in a field like secretRef);
	// they count only where an object of that identity is there, see hints.go.
	Hints       []Ref
	Labels      map[string]string
	Annotations map[string]string
	Deleting    bool
	Finalizers  []string
	Facts       Facts
}

// Ref is a reference that a spec makes to another object.
type Ref struct {
	// Field is the path in the referring object: "spec.controlPlaneRef".
	Field string `json:"field"`
	To    ID     `json:"to"`
}

// The reference fields that rules name.
const (
	FieldControlPlaneRef   = "spec.controlPlaneRef"
	FieldInfrastructureRef = "spec.infrastructureRef"
	// FieldBootstrapConfigRef is a Machine's bootstrap config.
	FieldBootstrapConfigRef = "spec.bootstrap.configRef"
	// FieldDataSecret is a Machine's bootstrap data Secret (a name in its own namespace).
	FieldDataSecret = "spec.bootstrap.dataSecretName"
	// FieldTemplateBootstrapConfigRef and FieldTemplateInfrastructureRef are a
	// MachinePool's own objects; MachineDeployments and MachineSets have templates there.
	FieldTemplateBootstrapConfigRef = "spec.template.spec.bootstrap.configRef"
	FieldTemplateInfrastructureRef  = "spec.template.spec.infrastructureRef"
	// FieldTemplateDataSecret is the bootstrap data Secret of a MachinePool, and in the template of a
	// MachineDeployment or MachineSet whose user provides the bootstrap data.
	FieldTemplateDataSecret = "spec.template.spec.bootstrap.dataSecretName"
	FieldClassRef           = "spec.topology.classRef"
	// FieldClusterName is the Cluster that an object says it belongs to (spec.clusterName).
	FieldClusterName = "spec.clusterName"
)

// Facts are the few values of spec and status that decisions read. They are
// set only for kinds that are read whole (see internal/management); everything
// else is metadata. Pointers: nil means that the object does not say.
type Facts struct {
	// Paused is Cluster.spec.paused (ClusterClass and others pause by annotation only).
	Paused bool `json:"paused,omitempty"`
	// Topology: Cluster.spec.topology is set.
	Topology bool `json:"topology,omitempty"`
	// TopologyDeployments and TopologyPools are the names in
	// Cluster.spec.topology.workers, each of which has a MachineDeployment or MachinePool.
	TopologyDeployments []string `json:"topologyDeployments,omitempty"`
	TopologyPools       []string `json:"topologyPools,omitempty"`
	// Replicas is spec.replicas of a control plane, MachineDeployment, MachineSet or MachinePool.
	Replicas *int64 `json:"replicas,omitempty"`
	// Version is spec.version (control plane, Machine) or spec.template.spec.version.
	Version string `json:"version,omitempty"`
	// ProviderID is spec.providerID of a Machine.
	ProviderID string `json:"providerID,omitempty"`
	// NodeName is status.nodeRef.name of a Machine.
	NodeName string `json:"nodeName,omitempty"`
	// DataSecretName is status.dataSecretName of a bootstrap config.
	DataSecretName string `json:"dataSecretName,omitempty"`
	// InfrastructureProvisioned is Cluster.status.initialization.infrastructureProvisioned
	// (v1beta1: status.infrastructureReady).
	InfrastructureProvisioned bool `json:"infrastructureProvisioned,omitempty"`
	// Endpoint is spec.controlPlaneEndpoint of a Cluster, its infrastructure or its control
	// plane as host:port, empty while unset.
	Endpoint string `json:"endpoint,omitempty"`
	// ExternalEtcd: the control plane's kubeadm configuration names an external etcd.
	ExternalEtcd bool `json:"externalEtcd,omitempty"`
	// UserSecret: the type of a Secret is not Cluster API's own, cluster.x-k8s.io/secret.
	// Certificates of another type are their user's (util/secret, IsManaged by type).
	UserSecret bool `json:"userSecret,omitempty"`
	// Selector is spec.selector.matchLabels of a MachineDeployment or MachineSet.
	Selector map[string]string `json:"selector,omitempty"`

	// What follows is looked at before a pivot only, and is in no record.

	// SelectorExpressions: spec.selector has matchExpressions as well, so Selector is not all.
	SelectorExpressions bool `json:"-"`
	// ObservedReplicas and UpToDateReplicas are status.replicas and status.upToDateReplicas
	// (v1beta1: updatedReplicas) of what has replicas.
	ObservedReplicas *int64 `json:"-"`
	UpToDateReplicas *int64 `json:"-"`
	// RolloutAfter is spec.rollout.after (v1beta1: spec.rolloutAfter); zero while unset.
	RolloutAfter time.Time `json:"-"`
	// CertificatesExpiry is status.certificatesExpiryDate of a Machine.
	CertificatesExpiry string `json:"-"`
}
