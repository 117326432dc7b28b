package adopt

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

// refusals are the reasons why adopting a complete Cluster would harm, other than
// those that lie in a single object's owners (owners.go).
func (v *view) refusals() []finding.Finding {
	var out []finding.Finding
	for _, reason := range []func(*view) []finding.Finding{
		sourceUnpaused, twoControlPlanes, beingDeleted, labelLost, bootstrapNotKubeadm, versionSkew,
		controlPlaneReplicas, machineSetReplicas, machineDeploymentReplicas,
	} {
		out = append(out, reason(v)...)
	}
	return out
}

// sourceUnpaused keeps P5: never are both copies of a Cluster reconciled.
func sourceUnpaused(v *view) []finding.Finding {
	if v.Other != OtherUnpaused {
		return nil
	}
	return []finding.Finding{differs(idSourceUnpaused, v.Cluster, "spec.paused", "false on the source", "true",
		"its copy on the source is not paused")}
}

func twoControlPlanes(v *view) []finding.Finding {
	if len(v.controlPlanes) < 2 {
		return nil
	}
	ref, _ := v.controlPlaneRef()
	var out []finding.Finding
	for _, cp := range v.controlPlanes {
		if cp.ID != ref {
			message := "it claims the Cluster, which names no control plane"
			if !ref.IsZero() {
				message = fmt.Sprintf("a second control plane beside %s claims the Cluster", ref)
			}
			out = append(out, about(idTwoControlPlanes, cp.ID, message))
		}
	}
	return out
}

// beingDeleted refuses what is going away: the Cluster, its control plane and its
// Machines, and with a record everything that moved.
func beingDeleted(v *view) []finding.Finding {
	var out []finding.Finding
	for _, o := range v.own {
		ref, _ := v.controlPlaneRef()
		n, recorded := v.recorded(o.ID)
		if o.Deleting && (o.ID == v.Cluster || o.ID == ref || o.GroupKind() == graph.Machine || (recorded && n.Moves)) {
			out = append(out, about(idBeingDeleted, o.ID, "it is being deleted"))
		}
	}
	return out
}

// labelLost looks, with a record, at the labels by which controllers find Machines:
// a KubeadmControlPlane that sees one Machine fewer makes another.
func labelLost(v *view) []finding.Finding {
	var out []finding.Finding
	for _, o := range v.members {
		n, ok := v.recorded(o.ID)
		if !ok || o.GroupKind() != graph.Machine {
			continue
		}
		for _, key := range []string{graph.ClusterNameLabel, graph.ControlPlaneLabel} {
			want, had := n.Labels[key]
			if _, has := o.Labels[key]; had && !has {
				out = append(out, differs(idLabelLost, o.ID, "metadata.labels["+key+"]", "", strconv.Quote(want),
					"a label by which its controller finds it is gone"))
			}
		}
	}
	return out
}

// bootstrapNotKubeadm is KCP's own condition for adopting (adoptMachines).
func bootstrapNotKubeadm(v *view) []finding.Finding {
	if !v.isKubeadm() {
		return nil
	}
	var out []finding.Finding
	for _, m := range v.controlPlaneMachines {
		to, ok := m.RefTo(graph.FieldBootstrapConfigRef)
		if ok && to.GroupKind() == graph.KubeadmConfig {
			continue
		}
		have := ""
		if ok {
			have = to.GroupKind().String()
		}
		out = append(out, differs(idBootstrapKind, m.ID, graph.FieldBootstrapConfigRef, have, graph.KubeadmConfig.String(),
			"a KubeadmControlPlane can only have Machines with a KubeadmConfig"))
	}
	return out
}

// versionSkew compares control-plane Machines with their control plane. What was
// so on the source, by the record, is fine: a rollout in flight is a matter of
// preflight there, and refusing it here would leave the Cluster held for good.
func versionSkew(v *view) []finding.Finding {
	cp := v.controlPlane
	if cp == nil || cp.Facts.Version == "" {
		return nil
	}
	var out []finding.Finding
	for _, m := range v.controlPlaneMachines {
		have, want := m.Facts.Version, cp.Facts.Version
		if have == "" && v.isKubeadm() {
			continue // upstream adopts it, and then replaces it: see rollouts
		}
		if withinSkew(have, want, v.Policy.MaxVersionSkew) {
			continue
		}
		if v.asRecorded(m, have) && v.asRecorded(cp, want) {
			continue
		}
		f := differs(idVersionSkew, m.ID, fieldVersion, have, want, fmt.Sprintf("its version is not that of %s", cp.ID))
		if !withinSkew(have, want, 1) {
			f.Remedy = "set the control plane's spec.version to the Machines': over more than one minor version upstream adopts nothing"
		}
		out = append(out, f)
	}
	return out
}

// otherControlPlane says which checks are skipped for a control plane of another kind.
func (v *view) otherControlPlane() []finding.Finding {
	if v.controlPlane == nil || v.isKubeadm() || len(v.controlPlaneMachines) == 0 {
		return nil
	}
	return []finding.Finding{about(idOtherControlPlane, v.controlPlane.ID,
		"it is no KubeadmControlPlane: bootstrap configs, certificates and whether it would replace Machines are not judged")}
}

func (v *view) asRecorded(o *graph.Object, version string) bool {
	n, ok := v.recorded(o.ID)
	return ok && n.Facts.Version == version
}

// withinSkew: equal, or the same major and at most skew minors apart.
func withinSkew(a, b string, skew int) bool {
	if a == b {
		return true
	}
	majorA, minorA, okA := minorOf(a)
	majorB, minorB, okB := minorOf(b)
	if skew < 1 || !okA || !okB || majorA != majorB {
		return false
	}
	return max(minorA, minorB)-min(minorA, minorB) <= skew
}

// minorOf reads "v1.30.2" (the v may be absent).
func minorOf(version string) (major, minor int, ok bool) {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) < 2 {
		return 0, 0, false
	}
	major, errMajor := strconv.Atoi(parts[0])
	minor, errMinor := strconv.Atoi(parts[1])
	return major, minor, errMajor == nil && errMinor == nil
}

// controlPlaneReplicas refuses a control plane that would scale. As with
// versions, what was so on the source is fine.
func controlPlaneReplicas(v *view) []finding.Finding {
	cp := v.controlPlane
	if cp == nil || !makesMachines(v.Graph, cp) {
		return nil
	}
	recorded := 0
	if v.record != nil {
		for i := range v.record.Nodes {
			if n := &v.record.Nodes[i]; n.GroupKind() == graph.Machine && n.Moves && isControlPlaneMachine(n.Labels) {
				recorded++
			}
		}
	}
	return v.replicas(cp, len(v.controlPlaneMachines), recorded, "control-plane Machines")
}

func machineSetReplicas(v *view) []finding.Finding {
	have, recorded := v.dependents(), v.recordedDependents()
	unsure := v.candidates(v.machines)
	var out []finding.Finding
	for _, set := range v.sets {
		if unsure[set.ID] {
			continue // that its Machines are ambiguous is said by itself
		}
		out = append(out, v.replicas(set, have[set.ID], recorded[set.ID], "Machines")...)
	}
	return out
}

// machineDeploymentReplicas compares with the sum over the MachineSets, which a
// released MachineDeployment would make right.
func machineDeploymentReplicas(v *view) []finding.Finding {
	have, recorded := map[graph.ID]int{}, map[graph.ID]int{}
	for _, set := range v.sets {
		for _, w := range v.expect(set).wants {
			if set.Facts.Replicas != nil {
				have[w.ID] += int(*set.Facts.Replicas)
			}
		}
		if n, ok := v.recorded(set.ID); ok && n.Facts.Replicas != nil {
			for _, owner := range n.Owners {
				recorded[owner.ID] += int(*n.Facts.Replicas)
			}
		}
	}
	unsure := v.candidates(v.sets)
	var out []finding.Finding
	for _, d := range v.deployments {
		if unsure[d.ID] {
			continue
		}
		out = append(out, v.replicas(d, have[d.ID], recorded[d.ID], "replicas in its MachineSets")...)
	}
	return out
}

// candidates are the owners of which some object may be or may not be.
func (v *view) candidates(objects []*graph.Object) map[graph.ID]bool {
	out := map[graph.ID]bool{}
	for _, o := range objects {
		for _, c := range v.expect(o).candidates {
			out[c] = true
		}
	}
	return out
}

// replicas is about one scaler; recorded is what it had in the record.
func (v *view) replicas(scaler *graph.Object, have, recorded int, what string) []finding.Finding {
	want := scaler.Facts.Replicas
	if want == nil || int64(have) == *want || v.Policy.AllowScale {
		return nil
	}
	n, ok := v.recorded(scaler.ID)
	if ok && recorded == have && n.Facts.Replicas != nil && *n.Facts.Replicas == *want {
		return nil
	}
	return []finding.Finding{differs(idReplicasDiffer, scaler.ID, "spec.replicas", strconv.FormatInt(*want, 10), strconv.Itoa(have),
		fmt.Sprintf("it has %d %s", have, what))}
}

func (v *view) recordedDependents() map[graph.ID]int {
	out := map[graph.ID]int{}
	if v.record == nil {
		return out
	}
	for i := range v.record.Nodes {
		if n := &v.record.Nodes[i]; n.Moves && n.GroupKind() == graph.Machine {
			for _, owner := range n.Owners {
				out[owner.ID]++
			}
		}
	}
	return out
}
