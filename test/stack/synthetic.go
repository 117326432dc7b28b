package stack

import (
	"context"
	"fmt"
	"maps"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	infrav1 "sigs.k8s.io/cluster-api/test/infrastructure/docker/api/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// SyntheticNamespace is where Synthetic puts its objects.
const SyntheticNamespace = "synthetic"

// ObjectsPerSyntheticCluster is what Synthetic makes for one workload cluster:
// a Cluster with infrastructure, control plane, MachineDeployment, MachineSet
// and three templates (8), five Secrets, and eight Machines with their
// bootstrap configuration, infrastructure and bootstrap Secret (32).
const ObjectsPerSyntheticCluster = 45

// syntheticClusters at a time: enough to keep the API server busy.
const syntheticClusters = 24

// Synthetic fills a bare management cluster with workload clusters of 3+5
// machines each, named c-00000 on, as they look when their controllers have
// done their work: every owner reference in place and with the live UID. Those
// that an earlier call made count. It returns how many objects it made, some
// 1,000 a second on two cores.
func Synthetic(ctx context.Context, m *Management, clusters int) (int, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: SyntheticNamespace}}
	if err := m.client.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return 0, err
	}
	var there clusterv1.ClusterList
	if err := m.client.List(ctx, &there, client.InNamespace(SyntheticNamespace)); err != nil {
		return 0, err
	}
	var made atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(syntheticClusters)
	for i := len(there.Items); i < clusters; i++ {
		group.Go(func() error {
			s := &synthesis{
				ctx: ctx, client: m.client, made: &made,
				b: Cluster(fmt.Sprintf("c-%05d", i)).InNamespace(SyntheticNamespace).ControlPlane(3).Workers("md-0", 5),
			}
			return s.cluster()
		})
	}
	err := group.Wait()
	return int(made.Load()), err
}

// Synthesize makes on a bare management cluster the objects of this one, as Synthetic
// does: with control plane, its first workers, and the namespace. What else the
// builder was told is left out.
func (b *ClusterBuilder) Synthesize(ctx context.Context, m *Management) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.namespace}}
	if err := m.client.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return (&synthesis{ctx: ctx, client: m.client, made: &atomic.Int64{}, b: b}).cluster()
}

// synthesis makes one workload cluster, owners first.
type synthesis struct {
	ctx    context.Context
	client client.Client
	made   *atomic.Int64
	b      *ClusterBuilder
	err    error // the first; nothing is made after it
}

// make creates an object with its owners and the Cluster's label, and fills in
// the UID that the next ones need.
func (s *synthesis) make(object client.Object, owners ...metav1.OwnerReference) {
	if s.err != nil {
		return
	}
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[clusterv1.ClusterNameLabel] = s.b.name
	object.SetLabels(labels)
	object.SetOwnerReferences(owners)
	if err := s.client.Create(s.ctx, object); err != nil {
		s.err = fmt.Errorf("creating %T %s: %w", object, client.ObjectKeyFromObject(object), err)
		return
	}
	s.made.Add(1)
}

func (s *synthesis) cluster() error {
	b := s.b
	cluster := b.cluster()
	s.make(cluster)
	ofCluster := owner(cluster, clusterv1.GroupVersion.String(), "Cluster", false)
	devCluster := b.devCluster()
	devCluster.Spec.ControlPlaneEndpoint = infrav1.APIEndpoint{Host: "127.0.0.1", Port: 6443}
	s.make(devCluster, ofCluster)
	s.make(b.machineTemplate(b.controlPlaneName()), ofCluster)

	kcp := b.kubeadmControlPlane()
	s.make(kcp, ofCluster)
	ofKCP := owner(kcp, controlplanev1.GroupVersion.String(), "KubeadmControlPlane", true)
	for _, name := range []string{"ca", "etcd", "sa", "proxy", "kubeconfig"} {
		s.make(b.secret(b.name+"-"+name), ofKCP)
	}
	for i := range b.controlPlane {
		labels := map[string]string{clusterv1.MachineControlPlaneLabel: "", clusterv1.MachineControlPlaneNameLabel: kcp.Name}
		s.machine(fmt.Sprintf("%s-%d", kcp.Name, i), labels, ofKCP)
	}

	objects := b.machineDeployment(b.workers[0])
	deployment := objects[2].(*clusterv1.MachineDeployment)
	s.make(objects[0], ofCluster)
	s.make(objects[1], ofCluster)
	s.make(deployment, ofCluster)
	set := &clusterv1.MachineSet{
		ObjectMeta: b.meta(deployment.Name+"-x", map[string]string{clusterv1.MachineDeploymentNameLabel: deployment.Name}),
		Spec: clusterv1.MachineSetSpec{
			ClusterName: b.name, Replicas: deployment.Spec.Replicas, Selector: deployment.Spec.Selector, Template: deployment.Spec.Template,
		},
	}
	s.make(set, owner(deployment, clusterv1.GroupVersion.String(), "MachineDeployment", true))
	ofSet := owner(set, clusterv1.GroupVersion.String(), "MachineSet", true)
	for i := range b.workers[0].replicas {
		labels := map[string]string{clusterv1.MachineDeploymentNameLabel: deployment.Name, clusterv1.MachineSetNameLabel: set.Name}
		s.machine(fmt.Sprintf("%s-%d", set.Name, i), labels, ofSet)
	}
	return s.err
}

// machine is four objects.
func (s *synthesis) machine(name string, labels map[string]string, controller metav1.OwnerReference) {
	machine := &clusterv1.Machine{ObjectMeta: s.b.meta(name, labels), Spec: s.b.machine(
		clusterv1.Bootstrap{ConfigRef: reference(bootstrapv1.GroupVersion.Group, "KubeadmConfig", name), DataSecretName: ptr.To(name)},
		reference(infrav1.GroupVersion.Group, "DevMachine", name))}
	machine.Spec.ProviderID = "dev:////" + name
	s.make(machine, controller)
	ofMachine := owner(machine, clusterv1.GroupVersion.String(), "Machine", true)

	config := &bootstrapv1.KubeadmConfig{ObjectMeta: s.b.meta(name, maps.Clone(labels)), Spec: bootstrapv1.KubeadmConfigSpec{
		ClusterConfiguration: clusterConfiguration,
		JoinConfiguration:    bootstrapv1.JoinConfiguration{NodeRegistration: nodeRegistration},
	}}
	s.make(config, ofMachine)
	infra := &infrav1.DevMachine{ObjectMeta: s.b.meta(name, maps.Clone(labels)), Spec: inMemoryMachine}
	infra.Spec.ProviderID = machine.Spec.ProviderID
	s.make(infra, ofMachine)
	ofConfig := owner(config, bootstrapv1.GroupVersion.String(), "KubeadmConfig", true)
	ofConfig.BlockOwnerDeletion = nil // as the bootstrap provider writes it
	s.make(s.b.secret(name), ofConfig)
}

func (b *ClusterBuilder) secret(name string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: b.meta(name, nil),
		Type:       clusterv1.ClusterSecretType,
		Data:       map[string][]byte{"value": []byte(name)},
	}
}

func owner(object client.Object, apiVersion, kind string, controller bool) metav1.OwnerReference {
	reference := metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: object.GetName(), UID: object.GetUID()}
	if controller {
		reference.Controller, reference.BlockOwnerDeletion = ptr.To(true), ptr.To(true)
	}
	return reference
}
