package adopt

import (
	"encoding/base64"
	"hash/fnv"
	"regexp"
	"slices"

	"github.com/move-hook/move-hook/pkg/graph"
	"github.com/move-hook/move-hook/pkg/labels"
)

// standAloneInRecord says that the record is of a Cluster of which a control-plane
// Machine was nobody's.
func standAloneInRecord(s *graph.Snapshot) bool {
	if s == nil {
		return false
	}
	return slices.ContainsFunc(s.Nodes, func(n graph.SnapshotNode) bool {
		return n.GroupKind() == graph.Machine && isControlPlaneMachine(n.Labels) && n.Moves &&
			!slices.ContainsFunc(n.Owners, func(o graph.SnapshotOwner) bool { return isTrue(o.Controller) })
	})
}

// expectTakenOver is for what was stand-alone on the source and has a
// KubeadmControlPlane now, made there or here: the record knows its owners from
// before, and the rules those that it is to have. Upstream leaves the Cluster beside
// the control plane (adoptMachines appends) and lets certificates and the
// kubeconfig change hands (adoptOwnedSecrets, adoptKubeconfigSecret). Bootstrap data
// stays with its KubeadmConfig.
func (v *view) expectTakenOver(o *graph.Object, n *graph.SnapshotNode) (expectation, bool) {
	if !v.standAlone || !v.isKubeadm() {
		return expectation{}, false
	}
	cp, _ := v.controlPlaneRef()
	switch {
	case o.GroupKind() == graph.Machine && isControlPlaneMachine(o.Labels):
		if slices.ContainsFunc(n.Owners, func(owner graph.SnapshotOwner) bool { return isTrue(owner.Controller) }) {
			return expectation{}, false
		}
		x := v.ruleOfMachine(o)
		return x, slices.ContainsFunc(x.wants, func(w want) bool { return w.ID == cp })
	case o.GroupKind() == graph.Secret:
		x := v.ruleOfSecret(o)
		return x, slices.ContainsFunc(x.wants, func(w want) bool { return w.ID == cp })
	}
	return expectation{}, false
}

// takesOver says that the control plane is to become a stand-alone Machine's controller.
func (v *view) takesOver(d *verdict) bool {
	m := d.object
	cp, ok := v.controlPlaneRef()
	return ok && m.GroupKind() == graph.Machine && isControlPlaneMachine(m.Labels) && d.has(repair) &&
		slices.Contains(d.wants, cp) && v.wasStandAlone(m) && !v.controls(cp, m)
}

// wasStandAlone says that a Machine was nobody's before: by the record, else by the
// Cluster among its owners, which it has from that time.
func (v *view) wasStandAlone(m *graph.Object) bool {
	if n, ok := v.recorded(m.ID); ok {
		return !slices.ContainsFunc(n.Owners, func(o graph.SnapshotOwner) bool { return isTrue(o.Controller) })
	}
	return slices.ContainsFunc(v.Graph.Owners(m.ID), func(e graph.Edge) bool { return e.To == v.Cluster && !e.Controller() })
}

func (v *view) controls(cp graph.ID, m *graph.Object) bool {
	e, ok := v.Graph.Controller(m.ID)
	return ok && e.To == cp
}

// holdFirst holds a free control plane before it is given Machines: with some of them
// it refuses to work ("mixed management mode"), with all it would act before their
// certificates and labels are right. The label goes on with the hold, so that a
// process killed afterwards finds an adoption that is not finished.
func (v *view) holdFirst(verdicts []*verdict) Step {
	cp := v.controlPlane
	if cp == nil || v.ControllersDown || labels.PausedByAnnotation(labels.MetaOf(cp)) || !slices.ContainsFunc(verdicts, v.takesOver) {
		return nil
	}
	const why Reason = "held before it is given Machines"
	m := labels.MetaOf(cp)
	c := labels.Hold(m, labels.Holder{Who: holder, Since: v.Now})
	c.SetLabels = labels.MarkPending(m).SetLabels
	step := Step{ChangeMeta{On: targetOf(cp), Change: c, Reason: why}}
	for _, m := range v.controlPlaneMachines {
		if c := labels.MarkPending(labels.MetaOf(m)); !c.Empty() {
			step = append(step, ChangeMeta{On: targetOf(m), Change: c, Reason: "to be adopted"})
		}
	}
	return step
}

// labelStandAlone gives Machines that were stand-alone the labels by which a
// KubeadmControlPlane and those who look for its Machines know them
// (desiredstate.ControlPlaneMachineLabels). A label that is there stays.
func (v *view) labelStandAlone() Step {
	cp := v.controlPlane
	if cp == nil || !v.isKubeadm() {
		return nil
	}
	var step Step
	for _, m := range v.controlPlaneMachines {
		if !v.wasStandAlone(m) || !v.controls(cp.ID, m) {
			continue
		}
		set := map[string]string{}
		for key, value := range map[string]string{graph.ClusterNameLabel: v.Cluster.Name, graph.ControlPlaneNameLabel: labelValue(cp.Name)} {
			if m.Labels[key] == "" {
				set[key] = value
			}
		}
		if len(set) > 0 {
			step = append(step, ChangeMeta{On: targetOf(m), Change: labels.Change{SetLabels: set}, Reason: "labels of a control plane's Machine"})
		}
	}
	return step
}

var fitsLabel = regexp.MustCompile(`^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`)

// labelValue is a name as Cluster API puts it into a label: itself, or a hash where
// it does not fit (util/labels/format.MustFormatValue).
func labelValue(name string) string {
	const longest = 63
	if len(name) <= longest && fitsLabel.MatchString(name) {
		return name
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(name)) // never fails
	return "hash_" + base64.RawURLEncoding.EncodeToString(hash.Sum(nil)) + "_z"
}
