package prefill

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/move-hook/move-hook/pkg/adopt"
	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// Judge adds what upstream says about each Machine: would the control plane of this
// proposal replace it? A Machine without a verdict is one about which nobody knows.
func (p *Proposal) Judge(verdicts map[graph.ID]adopt.Rollout) {
	for _, m := range p.Members {
		v, ok := verdicts[m.id()]
		switch {
		case !ok:
			p.add(about(idRolloutUnknown, m.id(), "", "nobody could say whether it would be replaced"))
		case !v.UpToDate:
			remedy := p.align(m)
			for _, why := range v.Reasons {
				f := differs(idWouldRollOut, m.id(), why.Field, why.Have, why.Want, "would be replaced: "+why.Message)
				f.Remedy = cmp.Or(remedy, f.Remedy)
				p.add(f)
			}
		}
	}
	finding.Sort(p.Findings)
}

// align is the command that makes a Machine's KubeadmConfig say what the control
// plane says, where that is without effect on the Machine: a clusterConfiguration
// that it lacks (kubeadm join reads the one in the workload cluster), a feature gate
// that upstream expects, an initConfiguration beside the joinConfiguration. The
// bootstrap provider reads none of it again, because the bootstrap data is there
// (kubeadmconfig_controller.go, reconcile). Empty where something else differs.
func (p *Proposal) align(m Member) string {
	if m.Config == nil || m.Config.Status.DataSecretName == "" && m.Machine.Spec.Bootstrap.DataSecretName == nil {
		return ""
	}
	want := comparedOf(p.ControlPlane.Spec.KubeadmConfigSpec)
	have := comparedOf(m.Config.Spec)
	defaultFeatureGates(want.cluster, p.ControlPlane.Spec.Version)
	patch := values{}
	var contradicted []difference
	if add := lacks("", have.cluster, want.cluster, &contradicted); len(add) > 0 {
		patch[clusterPart] = add
	}
	alike := len(lacks("", want.cluster, have.cluster, &contradicted)) == 0 && text(have.rest) == text(want.rest)
	if joins(m.Config) {
		alike = alike && text(have.join) == text(want.join)
		if len(have.init) > 0 {
			patch[initPart] = nil
		}
	} else {
		alike = alike && (text(have.init) == text(want.init) || text(asJoin(have.init)) == text(want.join))
	}
	if !alike || len(contradicted) > 0 || len(patch) == 0 {
		return ""
	}
	return fmt.Sprintf("its bootstrap data is there, so this changes nothing on the machine:\nkubectl patch kubeadmconfig -n %s %s --type=merge -p '%s'",
		m.Machine.Namespace, m.Config.Name, strings.ReplaceAll(text(values{"spec": patch}), "'", `'\''`))
}

// defaultFeatureGates is what upstream adds to what a control plane says before it
// compares (desired_state.go, DefaultFeatureGates).
func defaultFeatureGates(cluster values, of string) {
	const gate = "ControlPlaneKubeletLocalMode"
	v, err := version.ParseSemantic(of)
	if err != nil || v.Major() != 1 || v.Minor() < 31 || v.Minor() >= 36 {
		return
	}
	gates := clone(within(cluster, "featureGates"))
	if gates == nil {
		gates = values{}
	}
	if _, ok := gates[gate]; !ok {
		gates[gate] = true
	}
	cluster["featureGates"] = gates
}
