package stack

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	infrav1 "sigs.k8s.io/cluster-api/test/infrastructure/docker/api/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// certificateSecrets has upstream generate the four, and takes off what would
// make them Cluster API's.
func (b *ClusterBuilder) certificateSecrets() []client.Object {
	certificates := secret.NewCertificatesForInitialControlPlane(&bootstrapv1.ClusterConfiguration{})
	if err := certificates.Generate(); err != nil {
		panic(err) // no entropy
	}
	var objects []client.Object
	for _, certificate := range certificates {
		s := certificate.AsSecret(b.Key(), metav1.OwnerReference{})
		s.Type, s.OwnerReferences = corev1.SecretTypeOpaque, nil
		objects = append(objects, s)
		if b.externalEtcd && certificate.Purpose == secret.EtcdCA {
			// The in-memory backend wants the key of the etcd CA all the same; what it signs
			// nobody checks, so the client may have that too.
			s = s.DeepCopy()
			s.Name = secret.Name(b.name, secret.APIServerEtcdClient)
			objects = append(objects, s)
		}
	}
	return objects
}

// payload is applied in the workload cluster; the in-memory API server accepts it.
const payload = `apiVersion: v1
kind: ConfigMap
metadata:
  name: %s
  namespace: default
`

func (b *ClusterBuilder) resourceSetObjects() []client.Object {
	return []client.Object{
		&corev1.ConfigMap{ObjectMeta: b.meta(b.resourceSet, nil), Data: map[string]string{"cm": fmt.Sprintf(payload, b.resourceSet)}},
		&corev1.Secret{
			ObjectMeta: b.meta(b.resourceSet, nil),
			Type:       addonsv1.ClusterResourceSetSecretType,
			StringData: map[string]string{"cm": fmt.Sprintf(payload, b.resourceSet+"-secret")},
		},
		&addonsv1.ClusterResourceSet{ObjectMeta: b.meta(b.resourceSet, nil), Spec: addonsv1.ClusterResourceSetSpec{
			ClusterSelector: metav1.LabelSelector{MatchLabels: b.clusterLabels()},
			Resources: []addonsv1.ResourceRef{
				{Kind: string(addonsv1.ConfigMapClusterResourceSetResourceKind), Name: b.resourceSet},
				{Kind: string(addonsv1.SecretClusterResourceSetResourceKind), Name: b.resourceSet},
			},
		}},
	}
}

// workerClass is the only class of MachineDeployments that Class knows.
const workerClass = "worker"

// topology is a Cluster that leaves everything else to its ClusterClass.
func (b *ClusterBuilder) topology() *clusterv1.Cluster {
	cluster := b.cluster()
	cluster.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{}
	cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{}
	cluster.Spec.Topology = clusterv1.Topology{
		ClassRef:     clusterv1.ClusterClassRef{Name: b.class.Name, Namespace: b.class.Namespace},
		Version:      b.version,
		ControlPlane: clusterv1.ControlPlaneTopology{Replicas: ptr.To(int32(b.controlPlane))},
	}
	for _, w := range b.workers {
		cluster.Spec.Topology.Workers.MachineDeployments = append(cluster.Spec.Topology.Workers.MachineDeployments,
			clusterv1.MachineDeploymentTopology{Class: workerClass, Name: w.name, Replicas: ptr.To(int32(w.replicas))})
	}
	return cluster
}

// Class is a ClusterClass with a KubeadmControlPlane and one class of workers,
// and the templates it is made of. A Cluster is of it by OfClass.
func Class(namespace, name string) []client.Object {
	b := Cluster(name).InNamespace(namespace)
	controlPlane, worker := name+"-control-plane", name+"-worker"
	kcp := b.kubeadmControlPlane()
	return []client.Object{
		&infrav1.DevClusterTemplate{ObjectMeta: b.meta(name, nil), Spec: infrav1.DevClusterTemplateSpec{
			Template: infrav1.DevClusterTemplateResource{Spec: infrav1.DevClusterSpec{
				Backend: infrav1.DevClusterBackendSpec{InMemory: &infrav1.InMemoryClusterBackendSpec{}},
			}},
		}},
		&controlplanev1.KubeadmControlPlaneTemplate{ObjectMeta: b.meta(controlPlane, nil), Spec: controlplanev1.KubeadmControlPlaneTemplateSpec{
			Template: controlplanev1.KubeadmControlPlaneTemplateResource{
				Spec: controlplanev1.KubeadmControlPlaneTemplateResourceSpec{KubeadmConfigSpec: kcp.Spec.KubeadmConfigSpec},
			},
		}},
		b.machineTemplate(controlPlane),
		b.machineTemplate(worker),
		b.joinTemplate(worker),
		&clusterv1.ClusterClass{ObjectMeta: b.meta(name, nil), Spec: clusterv1.ClusterClassSpec{
			Infrastructure: clusterv1.InfrastructureClass{TemplateRef: templateOf(infrav1.GroupVersion.String(), "DevClusterTemplate", name)},
			ControlPlane: clusterv1.ControlPlaneClass{
				TemplateRef: templateOf(controlplanev1.GroupVersion.String(), "KubeadmControlPlaneTemplate", controlPlane),
				MachineInfrastructure: clusterv1.ControlPlaneClassMachineInfrastructureTemplate{
					TemplateRef: templateOf(infrav1.GroupVersion.String(), "DevMachineTemplate", controlPlane),
				},
			},
			Workers: clusterv1.WorkersClass{MachineDeployments: []clusterv1.MachineDeploymentClass{{
				Class: workerClass,
				Bootstrap: clusterv1.MachineDeploymentClassBootstrapTemplate{
					TemplateRef: templateOf(bootstrapv1.GroupVersion.String(), "KubeadmConfigTemplate", worker),
				},
				Infrastructure: clusterv1.MachineDeploymentClassInfrastructureTemplate{
					TemplateRef: templateOf(infrav1.GroupVersion.String(), "DevMachineTemplate", worker),
				},
			}}},
		}},
	}
}

func templateOf(apiVersion, kind, name string) clusterv1.ClusterClassTemplateReference {
	return clusterv1.ClusterClassTemplateReference{APIVersion: apiVersion, Kind: kind, Name: name}
}
