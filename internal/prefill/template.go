package prefill

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/move-hook/move-hook/pkg/graph"
)

// perMachine are the fields that providers write into the spec of one machine, or
// that follow from its Machine. What is another value on every machine is left out as
// well, so the list only has to help where there is a single machine.
var perMachine = [][]string{
	{"providerID"},                // every provider, by Cluster API's contract
	{"failureDomain"},             // Azure, vSphere: taken from the Machine
	{"instanceID"},                // AWS, CloudStack, OpenStack
	{"cloudInit", "secretPrefix"}, // AWS
	{"cloudInit", "secretCount"},  // AWS
	{"systemID"},                  // MAAS
	{"virtualMachineID"},          // Proxmox
	{"bootstrapped"},              // Docker
}

// infrastructureRef names the template. Where the Machines say from which they were
// made, it is that one: another name would replace them (filters.go, matchesInfraMachine).
func (p *Proposal) infrastructureRef(in Input) values {
	kind, _ := InfraKind(p.Members)
	of := TemplateKind(kind)
	name := in.Name
	cloned := filter(p.Members, func(m Member) bool { return clonedFrom(m, of) != "" })
	if m, ok := prevailing(cloned, func(m Member) string { return clonedFrom(m, of) }); ok {
		name = clonedFrom(m, of)
	}
	return values{"apiGroup": of.Group, "kind": of.Kind, "name": name}
}

func clonedFrom(m Member, kind graph.GroupKind) string {
	if m.Infra == nil || m.Infra.GetAnnotations()[clusterv1.TemplateClonedFromGroupKindAnnotation] != kind.String() {
		return ""
	}
	return m.Infra.GetAnnotations()[clusterv1.TemplateClonedFromNameAnnotation]
}

// template reuses the one that the control plane names, or builds it.
func (p *Proposal) template(in Input, kcp *controlplanev1.KubeadmControlPlane) {
	ref := kcp.Spec.MachineTemplate.Spec.InfrastructureRef
	kind, _ := InfraKind(p.Members)
	of := TemplateKind(kind)
	id := idOf(graph.GroupKind{Group: ref.APIGroup, Kind: ref.Kind}, in.Cluster.Namespace, ref.Name)
	if id.GroupKind() != of {
		p.add(differs(idTemplateKind, in.controlPlane(), "spec.machineTemplate.spec.infrastructureRef", id.GroupKind().String(), of.String(),
			"names a template of another kind than the Machines' infrastructure"))
		return
	}
	known := filter(p.Members, func(m Member) bool { return m.Infra != nil })
	i := slices.IndexFunc(in.Templates, func(t unstructured.Unstructured) bool { return t.GetName() == ref.Name })
	switch {
	case i >= 0 && len(known) > 0:
		guess := Proposal{}
		have, _, _ := unstructured.NestedMap(in.Templates[i].Object, "spec", "template", "spec")
		for _, d := range differences("spec.template.spec", have, guess.machineSpec(id, known)) {
			p.add(differs(idTemplate, id, d.path, shown(d.path, d.have), shown(d.path, d.want), "exists and is not what the Machines have; it is kept, and holds for new Machines only"))
		}
	case i >= 0:
	case len(known) == 0:
		p.add(about(idTemplateKind, in.cluster(), "", "has control-plane Machines none of whose infrastructure exists: there is nothing to make "+id.String()+" from"))
	default:
		spec := p.machineSpec(id, known)
		p.Template = &unstructured.Unstructured{Object: values{"spec": values{"template": values{"spec": spec}}}}
		p.Template.SetAPIVersion(in.TemplateAPIVersion)
		p.Template.SetKind(of.Kind)
		p.Template.SetNamespace(in.Cluster.Namespace)
		p.Template.SetName(ref.Name)
		p.Template.SetLabels(map[string]string{clusterv1.ClusterNameLabel: in.Cluster.Name})
	}
}

// machineSpec is what the infrastructure machines have in common.
func (p *Proposal) machineSpec(template graph.ID, members []Member) values {
	specs := map[string]values{}
	for _, m := range members {
		spec, _, _ := unstructured.NestedMap(m.Infra.Object, "spec")
		if spec == nil {
			spec = values{}
		}
		for _, path := range perMachine {
			unstructured.RemoveNestedField(spec, path...)
		}
		// The provider's own empty values stay: it may tell them from absent ones.
		specs[m.Machine.Name] = spec
	}
	return p.common(template, "spec.template.spec", members, specs)
}

// common takes the value that most have. Where every machine has another one it is
// most likely the machine's own (an address, a host name) and left out.
func (p *Proposal) common(template graph.ID, path string, members []Member, specs map[string]values) values {
	out := values{}
	for _, k := range union(slices.Collect(maps.Values(specs))...) {
		at := path + "." + k
		of := func(m Member) string { return oneOf(specs[m.Machine.Name], k) }
		most, _ := prevailing(members, of)
		value, has := specs[most.Machine.Name][k]
		different := map[string]bool{}
		inner := map[string]values{}
		for _, m := range members {
			different[of(m)] = true
			if v, ok := specs[m.Machine.Name][k].(values); ok {
				inner[m.Machine.Name] = v
			}
		}
		switch {
		case len(different) == 1:
			out[k] = value
		case len(inner) == len(members):
			if same := p.common(template, at, members, inner); len(same) > 0 {
				out[k] = same
			}
		case len(different) == len(members):
			p.unsure(template, at, members, specs, k, "is another one on every machine: it is left out")
		default:
			if has {
				out[k] = value
			}
			others := filter(members, func(m Member) bool { return of(m) != of(most) })
			p.unsure(template, at, others, specs, k, "is not the same on every machine: it is what most have")
		}
	}
	return out
}

// oneOf tells an absent field from every value.
func oneOf(spec values, k string) string {
	v, ok := spec[k]
	if !ok {
		return ""
	}
	return text(v)
}

func (p *Proposal) unsure(template graph.ID, at string, members []Member, specs map[string]values, k, message string) {
	var have []string
	for _, m := range members {
		have = append(have, m.Infra.GetName()+" "+cmp.Or(shown(at, specs[m.Machine.Name][k]), "none"))
	}
	p.add(about(idTemplateField, template, at, message+" ("+strings.Join(have, ", ")+")"))
}
