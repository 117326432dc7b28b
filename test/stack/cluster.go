package stack

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	infrav1 "sigs.k8s.io/cluster-api/test/infrastructure/docker/api/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// KubernetesVersion of workload clusters, unless a builder says otherwise.
const KubernetesVersion = "v1.36.0"

// ClusterBuilder describes a workload cluster in words and turns it into the
// objects a user would apply:
//
//	stack.Cluster("c1").InNamespace("fleet").ControlPlane(3).Workers("md-0", 2).Create(ctx, m)
//
// Its methods change the builder and return it.
type ClusterBuilder struct {
	name, namespace string
	version         string
	paused          bool

	controlPlane int // replicas of a KubeadmControlPlane
	standAlone   int // control-plane Machines without one
	workers      []workers
	pools        []workers
	healthCheck  bool
	overlapping  bool
	class        *client.ObjectKey
	certificates bool
	externalEtcd bool
	resourceSet  string
	movable      []string
}

type workers struct {
	name     string
	replicas int
}

// Cluster begins the description of a workload cluster: in namespace
// "default", and with nothing but its infrastructure so far.
func Cluster(name string) *ClusterBuilder {
	return &ClusterBuilder{name: name, namespace: metav1.NamespaceDefault, version: KubernetesVersion}
}

// InNamespace puts every object into the namespace, which Create makes.
func (b *ClusterBuilder) InNamespace(namespace string) *ClusterBuilder {
	b.namespace = namespace
	return b
}

// Version is the Kubernetes version of control plane and workers.
func (b *ClusterBuilder) Version(version string) *ClusterBuilder {
	b.version = version
	return b
}

// Paused sets spec.paused on the Cluster, as its user may.
func (b *ClusterBuilder) Paused() *ClusterBuilder {
	b.paused = true
	return b
}

// ControlPlane gives it a KubeadmControlPlane <cluster>-cp. With a class, it
// only says how many replicas.
func (b *ClusterBuilder) ControlPlane(replicas int) *ClusterBuilder {
	b.controlPlane = replicas
	return b
}

// StandAloneControlPlane gives it control-plane Machines <cluster>-cp-0, -1 …
// without a control plane object: the first runs kubeadm init, the others join.
func (b *ClusterBuilder) StandAloneControlPlane(machines int) *ClusterBuilder {
	b.standAlone = machines
	return b
}

// Workers adds a MachineDeployment <cluster>-<name>.
func (b *ClusterBuilder) Workers(name string, replicas int) *ClusterBuilder {
	b.workers = append(b.workers, workers{name, replicas})
	return b
}

// OverlappingSelectors has every MachineDeployment select by the Cluster's
// name alone, so that each selects the MachineSets of the others too.
func (b *ClusterBuilder) OverlappingSelectors() *ClusterBuilder {
	b.overlapping = true
	return b
}

// MachinePool adds a MachinePool <cluster>-<name> with a DevMachinePool. The
// Dev provider has no in-memory backend for pools: with controllers running,
// the pool stays without machines and the Cluster never becomes available, so
// it is of use in bare mode and for what is not waited for.
func (b *ClusterBuilder) MachinePool(name string, replicas int) *ClusterBuilder {
	b.pools = append(b.pools, workers{name, replicas})
	return b
}

// HealthCheck adds a MachineHealthCheck <cluster>-mhc for the workers.
func (b *ClusterBuilder) HealthCheck() *ClusterBuilder {
	b.healthCheck = true
	return b
}

// OfClass makes the Cluster's topology one of the ClusterClass in the
// namespace; see Class. The class must be there before the Cluster.
func (b *ClusterBuilder) OfClass(namespace, name string) *ClusterBuilder {
	b.class = &client.ObjectKey{Namespace: namespace, Name: name}
	return b
}

// UserCertificates adds the four certificate Secrets (ca, etcd, sa, proxy) as
// a user brings them: of type Opaque and owned by nobody.
func (b *ClusterBuilder) UserCertificates() *ClusterBuilder {
	b.certificates = true
	return b
}

// ExternalEtcd has the control plane use an etcd that is not its own, which needs
// the certificates of UserCertificates and one more, <cluster>-apiserver-etcd-client.
// There is no such etcd: the in-memory API server needs none.
func (b *ClusterBuilder) ExternalEtcd() *ClusterBuilder {
	b.externalEtcd = true
	return b.UserCertificates()
}

// ResourceSet adds a ClusterResourceSet that selects this Cluster, with a
// ConfigMap <name> and a Secret <name> as its payload.
func (b *ClusterBuilder) ResourceSet(name string) *ClusterBuilder {
	b.resourceSet = name
	return b
}

// Movable adds a ConfigMap that nobody owns and that `clusterctl move` takes
// along because of its label.
func (b *ClusterBuilder) Movable(name string) *ClusterBuilder {
	b.movable = append(b.movable, name)
	return b
}

// Key is the Cluster's namespace and name.
func (b *ClusterBuilder) Key() client.ObjectKey {
	return client.ObjectKey{Namespace: b.namespace, Name: b.name}
}

// WantedMachines is how many Machines the cluster has when it is ready, those
// of MachinePools not counted.
func (b *ClusterBuilder) WantedMachines() int {
	wanted := b.controlPlane + b.standAlone
	for _, w := range b.workers {
		wanted += w.replicas
	}
	return wanted
}

// Create makes the namespaces, unless they are there, and the objects, in order.
// With several stand-alone control-plane Machines it waits, where controllers
// run, until the first is initialised before it makes the others, as their
// user must: the bootstrap provider lets any of them begin.
func (b *ClusterBuilder) Create(ctx context.Context, m API) (client.ObjectKey, error) {
	all := b.Objects()
	joining := slices.IndexFunc(all, func(o client.Object) bool { return o.GetName() == b.standAloneName(1) })
	if own, ok := m.(*Management); joining < 0 || ok && own.options.Bare {
		return b.Key(), createIn(ctx, m, all)
	}
	if err := createIn(ctx, m, all[:joining]); err != nil {
		return b.Key(), err
	}
	if err := waitInitialized(ctx, m, b.Key()); err != nil {
		return b.Key(), err
	}
	return b.Key(), createIn(ctx, m, all[joining:])
}

// Create makes objects one after the other, and the namespaces they are in,
// unless those are there. The objects are not changed.
func (m *Management) Create(ctx context.Context, objects ...client.Object) error {
	return createIn(ctx, m, objects)
}

func createIn(ctx context.Context, m API, objects []client.Object) error {
	namespaces := sets.New("")
	for _, object := range objects {
		if namespace := object.GetNamespace(); !namespaces.Has(namespace) {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
			if err := m.Client().Create(ctx, ns); err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("creating namespace %s: %w", namespace, err)
			}
			namespaces.Insert(namespace)
		}
		if err := m.Client().Create(ctx, object.DeepCopyObject().(client.Object)); err != nil {
			return fmt.Errorf("creating %T %s: %w", object, client.ObjectKeyFromObject(object), err)
		}
	}
	return nil
}

// Objects are what a user would apply, in an order in which a user might.
func (b *ClusterBuilder) Objects() []client.Object {
	var objects []client.Object
	if b.certificates {
		objects = append(objects, b.certificateSecrets()...)
	}
	if b.resourceSet != "" {
		objects = append(objects, b.resourceSetObjects()...)
	}
	for _, name := range b.movable {
		objects = append(objects, &corev1.ConfigMap{
			ObjectMeta: b.meta(name, map[string]string{"clusterctl.cluster.x-k8s.io/move": ""}),
			Data:       map[string]string{"cluster": b.name},
		})
	}
	if b.class != nil {
		return append(objects, b.topology())
	}
	objects = append(objects, b.cluster(), b.devCluster())
	if b.controlPlane > 0 {
		objects = append(objects, b.machineTemplate(b.controlPlaneName()), b.kubeadmControlPlane())
	}
	for i := range b.standAlone {
		objects = append(objects, b.standAloneMachine(i)...)
	}
	for _, w := range b.workers {
		objects = append(objects, b.machineDeployment(w)...)
	}
	for _, w := range b.pools {
		objects = append(objects, b.machinePool(w)...)
	}
	if b.healthCheck {
		objects = append(objects, b.machineHealthCheck())
	}
	return objects
}

func (b *ClusterBuilder) meta(name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: b.namespace, Name: name, Labels: labels}
}

func (b *ClusterBuilder) controlPlaneName() string { return b.name + "-cp" }

func (b *ClusterBuilder) standAloneName(i int) string {
	return fmt.Sprintf("%s-%d", b.controlPlaneName(), i)
}

func (b *ClusterBuilder) cluster() *clusterv1.Cluster {
	cluster := &clusterv1.Cluster{
		ObjectMeta: b.meta(b.name, b.clusterLabels()),
		Spec: clusterv1.ClusterSpec{
			ClusterNetwork: clusterv1.ClusterNetwork{
				Pods:          clusterv1.NetworkRanges{CIDRBlocks: []string{"192.168.0.0/16"}},
				Services:      clusterv1.NetworkRanges{CIDRBlocks: []string{"10.128.0.0/12"}},
				ServiceDomain: "cluster.local",
			},
			InfrastructureRef: reference(infrav1.GroupVersion.Group, "DevCluster", b.name),
		},
	}
	if b.paused {
		cluster.Spec.Paused = ptr.To(true)
	}
	if b.controlPlane > 0 {
		cluster.Spec.ControlPlaneRef = reference("controlplane.cluster.x-k8s.io", "KubeadmControlPlane", b.controlPlaneName())
	}
	return cluster
}

func (b *ClusterBuilder) devCluster() *infrav1.DevCluster {
	cluster := &infrav1.DevCluster{
		ObjectMeta: b.meta(b.name, nil),
		Spec:       infrav1.DevClusterSpec{Backend: infrav1.DevClusterBackendSpec{InMemory: &infrav1.InMemoryClusterBackendSpec{}}},
	}
	// The in-memory backend sets this one itself, but in v1.14 it panics on an
	// object without any annotation (inmemorycluster_backend.go, ReconcileNormal).
	cluster.Annotations = map[string]string{infrav1.ListenerAnnotationName: b.Key().String()}
	return cluster
}

// clusterLabels are on the Cluster only so that a ClusterResourceSet can select it.
func (b *ClusterBuilder) clusterLabels() map[string]string {
	if b.resourceSet == "" {
		return nil
	}
	return map[string]string{"resources": b.resourceSet}
}

func reference(group, kind, name string) clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{APIGroup: group, Kind: kind, Name: name}
}
