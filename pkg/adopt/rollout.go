package adopt

import (
	"fmt"
	"maps"
	"slices"

	"github.com/move-hook/move-hook/pkg/finding"
	"github.com/move-hook/move-hook/pkg/graph"
)

const fieldVersion = "spec.version"

// AsksRollout are the control-plane Machines about which upstream has to be asked
// before the next decision, sorted; none while something is awaited, once the
// control plane is free, and for one that is no KubeadmControlPlane. The State
// needs no verdicts.
func AsksRollout(s State) []graph.ID {
	s.Rollout, s.RolloutUnknown = nil, ""
	switch Decide(s).Phase {
	case Blocked, Adopting, AwaitingStatus, Releasing:
	case Deferred, Watching, Adopted:
		return nil
	}
	if s.Graph == nil {
		return nil
	}
	v := newView(&s)
	if _, released, err := v.released(); released || err != nil {
		return nil
	}
	return v.judgedByUpstream()
}

// ControlPlaneMachines are a Cluster's KubeadmControlPlane and the Machines that
// upstream can be asked about; none where there is no such control plane.
func ControlPlaneMachines(cluster graph.ID, g *graph.Graph) (controlPlane graph.ID, machines []graph.ID) {
	s := State{Cluster: cluster, Graph: g}
	if impossible(&s) != "" {
		return graph.ID{}, nil
	}
	v := newView(&s)
	if machines = v.judgedByUpstream(); len(machines) == 0 {
		return graph.ID{}, nil
	}
	return v.controlPlane.ID, machines
}

// VerifyRollout says, for a judgement that stops nothing, which Machines the control
// plane will replace. It reads the verdicts of s and what was said of them.
func VerifyRollout(s State) []finding.Finding {
	s.Policy.AllowRollout = true
	if impossible(&s) != "" {
		return nil
	}
	_, notes := newView(&s).rollouts()
	return sortFindings(notes)
}

// judgedByUpstream are the Machines that upstream's UpToDate can be asked about.
func (v *view) judgedByUpstream() []graph.ID {
	if !v.isKubeadm() || v.controlPlane == nil {
		return nil
	}
	var out []graph.ID
	for _, m := range v.controlPlaneMachines {
		out = append(out, m.ID)
	}
	return out
}

// rollouts sorts upstream's verdicts. A Machine that was this control plane's
// already would be replaced on the source just so: refusing that here would leave
// the Cluster held for good, so it is said and no more. That the version differs is
// judged by versionSkew, and follows from what its flag allows.
func (v *view) rollouts() (refusals, notes []finding.Finding) {
	goesOn := v.managedAlready()
	for _, id := range slices.SortedFunc(maps.Keys(v.Rollout), graph.ID.Compare) {
		r := v.Rollout[id]
		for _, why := range r.Reasons {
			switch byVersion := why.Field == fieldVersion && why.Have != ""; {
			case byVersion && v.skewed(id):
			case byVersion, goesOn, v.Policy.AllowRollout:
				notes = append(notes, differs(idWillRollOut, id, why.Field, why.Have, why.Want,
					fmt.Sprintf("its control plane will replace it, as Cluster API %s judges: %s", r.Version, why.Message)))
			default:
				refusals = append(refusals, differs(idWouldRollOut, id, why.Field, why.Have, why.Want,
					fmt.Sprintf("its control plane would replace it, as Cluster API %s judges: %s", r.Version, why.Message)))
			}
		}
	}
	if v.RolloutUnknown != "" {
		f := about(idRolloutUnknown, v.Cluster, "nobody can say whether its control plane would replace Machines: "+v.RolloutUnknown)
		if goesOn || v.Policy.AllowRollout {
			f.Severity, f.Remedy = finding.Notes, ""
			notes = append(notes, f)
		} else {
			refusals = append(refusals, f)
		}
	}
	return refusals, append(notes, v.otherProvider()...)
}

// otherProvider: the verdicts are of another release than the one that will act.
func (v *view) otherProvider() []finding.Finding {
	if v.ProviderVersion == "" || v.controlPlane == nil {
		return nil
	}
	for _, r := range v.Rollout {
		if r.Version != v.ProviderVersion {
			return []finding.Finding{differs(idPredictionVersion, v.controlPlane.ID, "", r.Version, v.ProviderVersion,
				"whether Machines would be replaced was judged as one Cluster API release does, and another is installed")}
		}
	}
	return nil
}

// skewed says that versionSkew refuses a Machine.
func (v *view) skewed(machine graph.ID) bool {
	return slices.ContainsFunc(versionSkew(v), func(f finding.Finding) bool { return f.Object == machine.String() })
}

// managedAlready: every control-plane Machine was this control plane's before
// anything was written here.
func (v *view) managedAlready() bool {
	for _, m := range v.controlPlaneMachines {
		if !v.isManaged(m) {
			return false
		}
	}
	return len(v.controlPlaneMachines) > 0
}

// isManaged asks the record, then what a Machine arrived with. UIDs do not matter.
func (v *view) isManaged(m *graph.Object) bool {
	cp, ok := v.controlPlaneRef()
	if !ok {
		return false
	}
	if n, ok := v.recorded(m.ID); ok {
		return slices.ContainsFunc(n.Owners, func(o graph.SnapshotOwner) bool { return o.ID == cp && isTrue(o.Controller) })
	}
	if e, ok := v.Graph.Controller(m.ID); ok {
		return e.To == cp
	}
	x, ok := v.expectHeld(m)
	return ok && slices.ContainsFunc(x.wants, func(w want) bool { return w.ID == cp && isTrue(w.controller) })
}
