package prefill

import (
	"encoding/json"
	"fmt"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/move-hook/move-hook/pkg/finding"
)

// Compose works out the control plane and the template. Where a finding stops it,
// there is no control plane in the proposal.
func Compose(in Input) (Proposal, error) {
	p := Proposal{Existing: in.Existing != nil}
	if p.Findings = refusals(in); len(p.Findings) > 0 {
		return p, nil
	}
	p.Members = sorted(filter(in.Members, in.adoptable))
	p.missing()
	spec := values{
		"replicas":          int64(len(p.Members)),
		"version":           p.Members[0].Machine.Spec.Version,
		"machineTemplate":   values{"spec": p.machineTemplate(in)},
		"kubeadmConfigSpec": p.kubeadmSpec(in),
	}
	if in.Existing != nil {
		spec = p.fill(in, spec)
	}
	kcp, err := p.controlPlane(in, compact(spec))
	if err != nil {
		return p, err
	}
	p.differ(comparedOf(kcp.Spec.KubeadmConfigSpec))
	p.limits(in, kcp)
	p.template(in, kcp)
	finding.Sort(p.Findings)
	if !p.Stops() {
		p.ControlPlane = kcp
	}
	return p, nil
}

func (p *Proposal) controlPlane(in Input, spec values) (*controlplanev1.KubeadmControlPlane, error) {
	kcp := &controlplanev1.KubeadmControlPlane{}
	if in.Existing != nil {
		kcp = in.Existing.DeepCopy()
	} else {
		kcp.Namespace, kcp.Name = in.Cluster.Namespace, in.Name
		kcp.Labels = map[string]string{clusterv1.ClusterNameLabel: in.Cluster.Name}
	}
	kcp.APIVersion, kcp.Kind = controlplanev1.GroupVersion.String(), "KubeadmControlPlane"
	kcp.Spec = controlplanev1.KubeadmControlPlaneSpec{}
	text, err := json.Marshal(spec)
	if err == nil {
		err = json.Unmarshal(text, &kcp.Spec)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: putting its spec together: %w", in.controlPlane(), err)
	}
	return kcp, nil
}

// missing names the objects of Machines that do not exist. Upstream takes them for
// equal (filters.go, matchesKubeadmConfig and matchesInfraMachine).
func (p *Proposal) missing() {
	for _, m := range p.Members {
		if m.Config == nil {
			p.add(about(idUnknown, m.configID(), "", "does not exist: how its Machine was configured is not known"))
		}
		if m.Infra == nil {
			p.add(about(idUnknown, m.infraID(), "", "does not exist: on what its Machine stands is not known"))
		}
	}
}

// machineTemplate keeps what the control plane would otherwise take off its Machines
// when it adopts them (desired_state.go, ComputeDesiredMachine), where all agree.
func (p *Proposal) machineTemplate(in Input) values {
	spec := values{"infrastructureRef": p.infrastructureRef(in)}
	first := p.Members[0].Machine.Spec
	for field, of := range map[string]func(clusterv1.MachineSpec) any{
		"deletion":       deletionOf,
		"taints":         func(s clusterv1.MachineSpec) any { return s.Taints },
		"readinessGates": func(s clusterv1.MachineSpec) any { return s.ReadinessGates },
	} {
		value := valuesOf(map[string]any{field: of(first)})[field]
		agreed := true
		for _, m := range p.Members[1:] {
			if have := valuesOf(map[string]any{field: of(m.Machine.Spec)})[field]; text(have) != text(value) {
				agreed = false
				p.add(differs(idDiffer, m.id(), "spec."+field, shown(field, have), shown(field, value),
					"is not what all other Machines have, so the control plane says nothing and takes it off"))
			}
		}
		if agreed {
			spec[field] = value
		}
	}
	return spec
}

func deletionOf(s clusterv1.MachineSpec) any {
	d := valuesOf(s.Deletion)
	// The Machine API defaults it, and it means the same to a control plane that does not say it.
	return pick(d, []string{"nodeDrainTimeoutSeconds", "nodeVolumeDetachTimeoutSeconds", "nodeDeletionTimeoutSeconds"})
}
