package prefill

import (
	"strconv"

	"k8s.io/utils/ptr"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
)

// limits are what KubeadmControlPlane's webhook refuses, and what would harm once it
// reconciles although upstream's comparison of Machines does not see it.
func (p *Proposal) limits(in Input, kcp *controlplanev1.KubeadmControlPlane) {
	external := kcp.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.IsDefined()
	if in.ExternalEtcd && !external {
		p.add(about(idEtcd, in.controlPlane(), "spec.kubeadmConfigSpec.clusterConfiguration.etcd.external",
			"would look for etcd on its Machines, and the Cluster has a client certificate for an external one"))
	}
	have := int(ptr.Deref(kcp.Spec.Replicas, 0))
	if have != len(p.Members) {
		p.add(differs(idReplicas, in.controlPlane(), "spec.replicas", strconv.Itoa(have), strconv.Itoa(len(p.Members)),
			"would make or delete Machines"))
	} else if !external && have%2 == 0 {
		p.add(differs(idEven, in.controlPlane(), "spec.replicas", strconv.Itoa(have), "an odd number",
			"would have an even number of replicas with stacked etcd, which its webhook refuses"))
	}
}
