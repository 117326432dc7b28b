package stack

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	infrav1 "sigs.k8s.io/cluster-api/test/infrastructure/docker/api/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// inMemoryMachine has no delays: a machine is there as soon as it is asked for.
var inMemoryMachine = infrav1.DevMachineSpec{
	Backend: infrav1.DevMachineBackendSpec{InMemory: &infrav1.InMemoryMachineBackendSpec{}},
}

func (b *ClusterBuilder) machineTemplate(name string) *infrav1.DevMachineTemplate {
	return &infrav1.DevMachineTemplate{
		ObjectMeta: b.meta(name, nil),
		Spec:       infrav1.DevMachineTemplateSpec{Template: infrav1.DevMachineTemplateResource{Spec: inMemoryMachine}},
	}
}

// nodeRegistration carries kubelet arguments because real ones do: they decide
// how KubeadmControlPlane compares a Machine's configuration with its own.
var nodeRegistration = bootstrapv1.NodeRegistrationOptions{
	CRISocket:        "unix:///var/run/containerd/containerd.sock",
	KubeletExtraArgs: []bootstrapv1.Arg{{Name: "eviction-hard", Value: ptr.To("nodefs.available<0%,imagefs.available<0%")}},
}

var clusterConfiguration = bootstrapv1.ClusterConfiguration{
	APIServer: bootstrapv1.APIServer{CertSANs: []string{"localhost", "127.0.0.1"}},
}

func (b *ClusterBuilder) clusterConfiguration() bootstrapv1.ClusterConfiguration {
	c := clusterConfiguration
	if b.externalEtcd {
		c.Etcd.External = bootstrapv1.ExternalEtcd{
			Endpoints: []string{"https://127.0.0.1:2379"},
			CAFile:    "/etc/kubernetes/pki/etcd/ca.crt",
			CertFile:  "/etc/kubernetes/pki/apiserver-etcd-client.crt",
			KeyFile:   "/etc/kubernetes/pki/apiserver-etcd-client.key",
		}
	}
	return c
}

func (b *ClusterBuilder) kubeadmControlPlane() *controlplanev1.KubeadmControlPlane {
	return &controlplanev1.KubeadmControlPlane{
		ObjectMeta: b.meta(b.controlPlaneName(), nil),
		Spec: controlplanev1.KubeadmControlPlaneSpec{
			Replicas: ptr.To(int32(b.controlPlane)),
			Version:  b.version,
			MachineTemplate: controlplanev1.KubeadmControlPlaneMachineTemplate{
				Spec: controlplanev1.KubeadmControlPlaneMachineTemplateSpec{
					InfrastructureRef: reference(infrav1.GroupVersion.Group, "DevMachineTemplate", b.controlPlaneName()),
				},
			},
			KubeadmConfigSpec: bootstrapv1.KubeadmConfigSpec{
				ClusterConfiguration: b.clusterConfiguration(),
				InitConfiguration:    bootstrapv1.InitConfiguration{NodeRegistration: nodeRegistration},
				JoinConfiguration:    bootstrapv1.JoinConfiguration{NodeRegistration: nodeRegistration},
			},
		},
	}
}

// standAloneMachine is the Machine, its bootstrap configuration and its
// infrastructure. Their owner references are the controllers' work.
func (b *ClusterBuilder) standAloneMachine(i int) []client.Object {
	name := b.standAloneName(i)
	labels := map[string]string{clusterv1.ClusterNameLabel: b.name, clusterv1.MachineControlPlaneLabel: ""}
	config := bootstrapv1.KubeadmConfigSpec{ClusterConfiguration: clusterConfiguration}
	if i == 0 {
		config.InitConfiguration.NodeRegistration = nodeRegistration
	} else {
		config.JoinConfiguration = bootstrapv1.JoinConfiguration{
			NodeRegistration: nodeRegistration,
			ControlPlane:     &bootstrapv1.JoinControlPlane{},
		}
	}
	return []client.Object{
		&bootstrapv1.KubeadmConfig{ObjectMeta: b.meta(name, labels), Spec: config},
		&infrav1.DevMachine{ObjectMeta: b.meta(name, labels), Spec: inMemoryMachine},
		&clusterv1.Machine{ObjectMeta: b.meta(name, labels), Spec: b.machine(
			clusterv1.Bootstrap{ConfigRef: reference(bootstrapv1.GroupVersion.Group, "KubeadmConfig", name)},
			reference(infrav1.GroupVersion.Group, "DevMachine", name))},
	}
}

func (b *ClusterBuilder) machine(bootstrap clusterv1.Bootstrap, infrastructure clusterv1.ContractVersionedObjectReference) clusterv1.MachineSpec {
	return clusterv1.MachineSpec{ClusterName: b.name, Version: b.version, Bootstrap: bootstrap, InfrastructureRef: infrastructure}
}

// machineDeployment is the MachineDeployment and the two templates it names.
func (b *ClusterBuilder) machineDeployment(w workers) []client.Object {
	name := b.name + "-" + w.name
	selector := map[string]string{clusterv1.ClusterNameLabel: b.name}
	if !b.overlapping {
		selector[clusterv1.MachineDeploymentNameLabel] = name
	}
	return []client.Object{
		b.machineTemplate(name),
		b.joinTemplate(name),
		&clusterv1.MachineDeployment{ObjectMeta: b.meta(name, nil), Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: b.name,
			Replicas:    ptr.To(int32(w.replicas)),
			Selector:    metav1.LabelSelector{MatchLabels: selector},
			Template: clusterv1.MachineTemplateSpec{
				ObjectMeta: clusterv1.ObjectMeta{Labels: selector},
				Spec: b.machine(
					clusterv1.Bootstrap{ConfigRef: reference(bootstrapv1.GroupVersion.Group, "KubeadmConfigTemplate", name)},
					reference(infrav1.GroupVersion.Group, "DevMachineTemplate", name)),
			},
		}},
	}
}

func (b *ClusterBuilder) joinTemplate(name string) *bootstrapv1.KubeadmConfigTemplate {
	return &bootstrapv1.KubeadmConfigTemplate{
		ObjectMeta: b.meta(name, nil),
		Spec: bootstrapv1.KubeadmConfigTemplateSpec{Template: bootstrapv1.KubeadmConfigTemplateResource{
			Spec: bootstrapv1.KubeadmConfigSpec{JoinConfiguration: bootstrapv1.JoinConfiguration{NodeRegistration: nodeRegistration}},
		}},
	}
}

// machinePool is the MachinePool with its bootstrap configuration and its infrastructure.
func (b *ClusterBuilder) machinePool(w workers) []client.Object {
	name := b.name + "-" + w.name
	return []client.Object{
		&bootstrapv1.KubeadmConfig{ObjectMeta: b.meta(name, nil), Spec: bootstrapv1.KubeadmConfigSpec{
			JoinConfiguration: bootstrapv1.JoinConfiguration{NodeRegistration: nodeRegistration},
		}},
		&infrav1.DevMachinePool{ObjectMeta: b.meta(name, nil)},
		&clusterv1.MachinePool{ObjectMeta: b.meta(name, nil), Spec: clusterv1.MachinePoolSpec{
			ClusterName: b.name,
			Replicas:    ptr.To(int32(w.replicas)),
			Template: clusterv1.MachineTemplateSpec{Spec: b.machine(
				clusterv1.Bootstrap{ConfigRef: reference(bootstrapv1.GroupVersion.Group, "KubeadmConfig", name)},
				reference(infrav1.GroupVersion.Group, "DevMachinePool", name))},
		}},
	}
}

func (b *ClusterBuilder) machineHealthCheck() *clusterv1.MachineHealthCheck {
	return &clusterv1.MachineHealthCheck{
		ObjectMeta: b.meta(b.name+"-mhc", nil),
		Spec: clusterv1.MachineHealthCheckSpec{
			ClusterName: b.name,
			Selector: metav1.LabelSelector{
				MatchLabels: map[string]string{clusterv1.ClusterNameLabel: b.name},
				MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: clusterv1.MachineControlPlaneLabel, Operator: metav1.LabelSelectorOpDoesNotExist},
				},
			},
			Checks: clusterv1.MachineHealthCheckChecks{
				UnhealthyNodeConditions: []clusterv1.UnhealthyNodeCondition{
					{Type: "Ready", Status: corev1.ConditionUnknown, TimeoutSeconds: ptr.To(int32(300))},
				},
			},
		},
	}
}
