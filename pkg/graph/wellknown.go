package graph

// Our own marks. pkg/labels says what they mean and changes them.
const (
	AdoptionLabel   = "pivot.cluster.x-k8s.io/adoption"
	AdoptionPending = "pending"
	// AdoptionNever is the value of an annotation with the label's key, on a Cluster
	// whose stand-alone control-plane Machines are not to be adopted.
	AdoptionNever      = "never"
	HeldAnnotation     = "pivot.cluster.x-k8s.io/held"
	RecordAnnotation   = "pivot.cluster.x-k8s.io/record"
	ReleasedAnnotation = "pivot.cluster.x-k8s.io/released"
	AdoptedAnnotation  = "pivot.cluster.x-k8s.io/adopted"
	// OwnersAnnotation holds the owner references that an armed target took off, see ParseHeldOwners.
	OwnersAnnotation = "pivot.cluster.x-k8s.io/owners"
	// ReplicasAnnotation is on a provider's Deployment that is scaled to zero: what it
	// had; WebhooksAnnotation on its webhook configurations: which had to be ignored.
	ReplicasAnnotation = "pivot.cluster.x-k8s.io/replicas"
	WebhooksAnnotation = "pivot.cluster.x-k8s.io/webhooks"
	// RecordLabel is on the record's ConfigMaps, its value names the Cluster.
	RecordLabel = "pivot.cluster.x-k8s.io/record"
)

// Cluster API's labels and annotations (api/core/v1beta2/common_types.go and siblings).
const (
	PausedAnnotation      = "cluster.x-k8s.io/paused"
	ClusterNameLabel      = "cluster.x-k8s.io/cluster-name"
	ControlPlaneLabel     = "cluster.x-k8s.io/control-plane"
	ControlPlaneNameLabel = "cluster.x-k8s.io/control-plane-name"
	DeploymentNameLabel   = "cluster.x-k8s.io/deployment-name"
	SetNameLabel          = "cluster.x-k8s.io/set-name"
	PoolNameLabel         = "cluster.x-k8s.io/pool-name"
	// On the MachineDeployments and MachinePools of a Cluster with a topology: their names there.
	TopologyDeploymentNameLabel = "topology.cluster.x-k8s.io/deployment-name"
	TopologyPoolNameLabel       = "topology.cluster.x-k8s.io/pool-name"
)

// clusterctl's labels and annotations (cmd/clusterctl/api/v1alpha3/labels.go and annotations.go).
const (
	ClusterctlLabel         = "clusterctl.cluster.x-k8s.io"
	MoveLabel               = "clusterctl.cluster.x-k8s.io/move"
	MoveHierarchyLabel      = "clusterctl.cluster.x-k8s.io/move-hierarchy"
	BlockMoveAnnotation     = "clusterctl.cluster.x-k8s.io/block-move"
	DeleteForMoveAnnotation = "clusterctl.cluster.x-k8s.io/delete-for-move"
)

// ClusterSecretType is the type of the Secrets that Cluster API makes (clusterv1.ClusterSecretType).
const ClusterSecretType = "cluster.x-k8s.io/secret"

// LastAppliedAnnotation is kubectl's copy of what was applied: on a Secret it holds the data.
const LastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"
