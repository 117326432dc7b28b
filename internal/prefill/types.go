package prefill

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// Input is everything that Compose looks at.
type Input struct {
	Cluster *clusterv1.Cluster
	// Members are the control-plane Machines, also those that something controls.
	Members []Member
	// Name is the control plane's.
	Name string
	// Existing is the KubeadmControlPlane of that name; nil if there is none.
	Existing *controlplanev1.KubeadmControlPlane
	// Templates are those in the namespace of the kind that TemplateKind names.
	Templates []unstructured.Unstructured
	// TemplateAPIVersion is the one in which that kind is served; empty if it is not.
	TemplateAPIVersion string
	// ExternalEtcd: there is a client certificate for an external etcd.
	ExternalEtcd bool
}

// Member is a control-plane Machine with its own objects; nil is one that does not exist.
type Member struct {
	Machine *clusterv1.Machine
	Config  *bootstrapv1.KubeadmConfig
	Infra   *unstructured.Unstructured
}

// Proposal is what Compose works out.
type Proposal struct {
	// ControlPlane as it is to be; nil where a finding stops everything.
	ControlPlane *controlplanev1.KubeadmControlPlane
	// Existing says that the control plane is there already, and Additions are the
	// fields of its spec that it lacks.
	Existing  bool
	Additions map[string]any
	// Template is the one to create; nil where the one that ControlPlane names exists.
	Template *unstructured.Unstructured
	// Members are those to be adopted, sorted by name.
	Members  []Member
	Findings []finding.Finding
}

// TemplateKind is the kind of template that infrastructure machines of a kind are
// made from, by Cluster API's contract.
func TemplateKind(infra graph.GroupKind) graph.GroupKind {
	return graph.GroupKind{Group: infra.Group, Kind: infra.Kind + "Template"}
}

// InfraKind is the kind of the Machines' infrastructure; false if they differ or
// there is none.
func InfraKind(members []Member) (graph.GroupKind, bool) {
	var kind graph.GroupKind
	for i, m := range members {
		ref := m.Machine.Spec.InfrastructureRef
		gk := graph.GroupKind{Group: ref.APIGroup, Kind: ref.Kind}
		if i > 0 && gk != kind {
			return graph.GroupKind{}, false
		}
		kind = gk
	}
	return kind, kind.Kind != ""
}

// Stops says that nothing must be done with the proposal.
func (p Proposal) Stops() bool { return p.has(finding.Stops) }

// Clean says that nothing is wrong with it; notes may be left.
func (p Proposal) Clean() bool { return !p.has(finding.Stops) && !p.has(finding.Harms) }

func (p Proposal) has(s finding.Severity) bool {
	return slices.ContainsFunc(p.Findings, func(f finding.Finding) bool { return f.Severity == s })
}

// RollsOut says that upstream's comparison would replace a Machine, or was not asked.
func (p Proposal) RollsOut() bool {
	return slices.ContainsFunc(p.Findings, func(f finding.Finding) bool { return f.ID == idWouldRollOut || f.ID == idRolloutUnknown })
}

func (p *Proposal) add(fs ...finding.Finding) { p.Findings = append(p.Findings, fs...) }

func (m Member) id() graph.ID { return idOf(graph.Machine, m.Machine.Namespace, m.Machine.Name) }

func (m Member) configID() graph.ID {
	return idOf(graph.KubeadmConfig, m.Machine.Namespace, m.Machine.Spec.Bootstrap.ConfigRef.Name)
}

func (m Member) infraID() graph.ID {
	ref := m.Machine.Spec.InfrastructureRef
	return idOf(graph.GroupKind{Group: ref.APIGroup, Kind: ref.Kind}, m.Machine.Namespace, ref.Name)
}

func idOf(gk graph.GroupKind, namespace, name string) graph.ID {
	return graph.ID{Group: gk.Group, Kind: gk.Kind, Namespace: namespace, Name: name}
}

func sorted(members []Member) []Member {
	members = slices.Clone(members)
	slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.Machine.Name, b.Machine.Name) })
	return members
}

func filter(members []Member, keep func(Member) bool) []Member {
	return slices.DeleteFunc(slices.Clone(members), func(m Member) bool { return !keep(m) })
}

// prevailing is the Member whose key most others share. Of two keys that are equally
// frequent the newest Machine's wins: it tells best what its user wants now.
func prevailing(members []Member, key func(Member) string) (Member, bool) {
	if len(members) == 0 {
		return Member{}, false
	}
	count := map[string]int{}
	for _, m := range members {
		count[key(m)]++
	}
	return slices.MaxFunc(members, func(a, b Member) int {
		if c := count[key(a)] - count[key(b)]; c != 0 {
			return c
		}
		return a.Machine.CreationTimestamp.Compare(b.Machine.CreationTimestamp.Time)
	}), true
}

func (in Input) cluster() graph.ID {
	return idOf(graph.Cluster, in.Cluster.Namespace, in.Cluster.Name)
}

func (in Input) controlPlane() graph.ID {
	return idOf(graph.KubeadmControlPlane, in.Cluster.Namespace, in.Name)
}
