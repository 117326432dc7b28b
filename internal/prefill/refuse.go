package prefill

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

// adoptable: nothing controls the Machine, or the control plane that is to have it does.
func (in Input) adoptable(m Member) bool {
	controller := metav1.GetControllerOf(m.Machine)
	return controller == nil || in.controls(controller)
}

func (in Input) controls(controller *metav1.OwnerReference) bool {
	return in.Existing != nil && controller.Name == in.Name && controller.Kind == graph.KubeadmControlPlane.Kind &&
		graph.GroupOf(controller.APIVersion) == graph.ControlPlaneGroup
}

// refusals are what makes prefilling impossible. The first kind that is found is
// enough: what follows would only repeat it.
func refusals(in Input) []finding.Finding {
	for _, check := range []func(Input) []finding.Finding{
		refuseTopology, refuseControlPlane, refuseNoMachine, refuseController, refuseDeleting,
		refuseBootstrap, refuseVersions, refuseInfrastructure,
	} {
		if found := check(in); len(found) > 0 {
			finding.Sort(found)
			return found
		}
	}
	return nil
}

func refuseTopology(in Input) []finding.Finding {
	if !in.Cluster.Spec.Topology.IsDefined() {
		return nil
	}
	return []finding.Finding{about(idTopology, in.cluster(), "spec.topology", "has a topology, which makes its control plane")}
}

func refuseControlPlane(in Input) []finding.Finding {
	ref := in.Cluster.Spec.ControlPlaneRef
	is := graph.GroupKind{Group: ref.APIGroup, Kind: ref.Kind}
	switch {
	case ref.IsDefined() && is != graph.KubeadmControlPlane:
		return []finding.Finding{differs(idNotKubeadm, in.cluster(), graph.FieldControlPlaneRef, is.String(), graph.KubeadmControlPlane.String(),
			"refers to a control plane that is no KubeadmControlPlane")}
	case ref.IsDefined() && ref.Name != in.Name:
		return []finding.Finding{differs(idForeign, in.cluster(), graph.FieldControlPlaneRef, ref.Name, in.Name,
			"refers to another control plane already")}
	case in.Existing != nil && !labels.IsPending(labels.Meta{Labels: in.Existing.Labels}):
		return []finding.Finding{about(idNotMarked, in.controlPlane(), "metadata.labels["+labels.Adoption+"]",
			"exists and is not marked for adoption")}
	}
	return nil
}

func refuseNoMachine(in Input) []finding.Finding {
	if len(in.Members) > 0 {
		return nil
	}
	return []finding.Finding{about(idNoMachine, in.cluster(), "", "has no control-plane Machine")}
}

func refuseController(in Input) []finding.Finding {
	var found []finding.Finding
	for _, m := range in.Members {
		if controller := metav1.GetControllerOf(m.Machine); controller != nil && !in.controls(controller) {
			f := differs(idForeign, m.id(), "metadata.ownerReferences", controller.Kind+"/"+controller.Name, "no controller",
				"is controlled already")
			found = append(found, f)
		}
	}
	return found
}

func refuseDeleting(in Input) []finding.Finding {
	var found []finding.Finding
	deleting := func(o metav1.Object, id graph.ID) {
		if o.GetDeletionTimestamp() != nil {
			found = append(found, about(idBeingDeleted, id, "metadata.deletionTimestamp", "is being deleted"))
		}
	}
	deleting(in.Cluster, in.cluster())
	if in.Existing != nil {
		deleting(in.Existing, in.controlPlane())
	}
	for _, m := range in.Members {
		deleting(m.Machine, m.id())
	}
	return found
}

func refuseBootstrap(in Input) []finding.Finding {
	var found []finding.Finding
	for _, m := range in.Members {
		ref := m.Machine.Spec.Bootstrap.ConfigRef
		if is := (graph.GroupKind{Group: ref.APIGroup, Kind: ref.Kind}); is != graph.KubeadmConfig {
			have := is.String()
			if !ref.IsDefined() {
				have = ""
			}
			found = append(found, differs(idBootstrapKind, m.id(), graph.FieldBootstrapConfigRef, have, graph.KubeadmConfig.String(),
				"was not bootstrapped by a KubeadmConfig, and a KubeadmControlPlane adopts no other"))
		}
	}
	if len(found) > 0 {
		return found
	}
	for _, m := range in.Members {
		if m.Config != nil {
			return nil
		}
	}
	return []finding.Finding{about(idBootstrapKind, in.cluster(), "", "has control-plane Machines none of whose KubeadmConfigs exists: there is nothing to fill from")}
}

func refuseVersions(in Input) []finding.Finding {
	var found []finding.Finding
	versions := map[string][]string{}
	for _, m := range sorted(in.Members) {
		v := m.Machine.Spec.Version
		versions[v] = append(versions[v], m.Machine.Name)
		// KubeadmControlPlane's webhook takes no other (validateKubeadmControlPlaneSpec),
		// and upstream compares the two as text.
		if _, err := version.ParseSemantic(v); err != nil || !strings.HasPrefix(v, "v") {
			found = append(found, differs(idVersion, m.id(), "spec.version", v, "vX.Y.Z", "has no Kubernetes version that a control plane can have"))
		}
	}
	if len(versions) < 2 || len(found) > 0 {
		return found
	}
	var parts []string
	for _, m := range sorted(in.Members) {
		parts = append(parts, fmt.Sprintf("%s %s", m.Machine.Name, m.Machine.Spec.Version))
	}
	return []finding.Finding{differs(idVersions, in.cluster(), "Machine spec.version", strings.Join(parts, ", "), "one version",
		"has control-plane Machines of different Kubernetes versions")}
}

func refuseInfrastructure(in Input) []finding.Finding {
	kind, ok := InfraKind(in.Members)
	if !ok {
		var parts []string
		for _, m := range sorted(in.Members) {
			parts = append(parts, m.Machine.Name+" "+m.Machine.Spec.InfrastructureRef.Kind)
		}
		return []finding.Finding{differs(idInfraKinds, in.cluster(), "Machine "+graph.FieldInfrastructureRef, strings.Join(parts, ", "), "one kind",
			"has control-plane Machines on different kinds of infrastructure")}
	}
	if in.TemplateAPIVersion == "" {
		return []finding.Finding{about(idTemplateKind, in.cluster(), "", "stands on "+kind.String()+", and "+TemplateKind(kind).String()+" is not served")}
	}
	return nil
}
